// Prints each failed test with its error, then the totals of all scripts' reports (Vitest's JSON) as the last line.
import { existsSync, readFileSync } from 'node:fs'
import { join, relative } from 'node:path'

const [directory, ...scripts] = process.argv.slice(2)
const totals = { passed: 0, failed: 0, skipped: 0 }

const print = (line) => process.stdout.write(`${line}\n`)

function tell(what, messages) {
  print(`\n${what}`)
  for (const message of messages) print(message.replace(/^/gm, '  '))
}

function resultsOf(report) {
  const path = join(directory, `${report}.json`)
  return existsSync(path) ? JSON.parse(readFileSync(path, 'utf8')).testResults : []
}

/** The failures of a file: those of its tests, or its own. */
function failuresOf({ name, status, message, assertionResults }) {
  const file = relative('.', name)
  const tests = assertionResults.filter((test) => test.status === 'failed')
  if (status === 'failed' && tests.length === 0) return [{ what: file, messages: [message] }]
  return tests.map(({ fullName, failureMessages }) => ({ what: `${file}: ${fullName}`, messages: failureMessages }))
}

function count(result) {
  const { assertionResults } = result
  const passed = assertionResults.filter(({ status }) => status === 'passed').length
  const failed = assertionResults.filter(({ status }) => status === 'failed').length
  totals.passed += passed
  totals.failed += failuresOf(result).length
  totals.skipped += assertionResults.length - passed - failed
}

for (const script of scripts) {
  const first = resultsOf(script)
  const again = resultsOf(`${script}.again`)
  const files = new Set(again.map(({ name }) => name))
  // What ran twice counts as it ended the second time.
  for (const result of [...first.filter(({ name }) => !files.has(name)), ...again]) count(result)
  for (const { what, messages } of again.flatMap(failuresOf)) tell(`FAILED again in ${script}: ${what}`, messages)
  for (const result of first) {
    const then = files.has(result.name) ? 'FAILED, before its file ran once more,' : 'FAILED'
    for (const { what, messages } of failuresOf(result)) tell(`${then} in ${script}: ${what}`, messages)
  }
}

const skipped = totals.skipped > 0 ? `, ${totals.skipped} skipped` : ''
print(`${totals.passed} passed, ${totals.failed} failed${skipped}`)
