// Prints each failed test with its error, then the totals of all Vitest JSON reports as the last line.
import { existsSync, readFileSync } from 'node:fs'
import { join, relative } from 'node:path'

const [directory, ...scripts] = process.argv.slice(2)
const totals = { passed: 0, failed: 0, skipped: 0 }

const print = (line) => process.stdout.write(`${line}\n`)

function printFailure(title, messages) {
  print(`\n${title}`)
  for (const message of messages) print(message.replace(/^/gm, '  '))
}

function readReport(name) {
  const path = join(directory, `${name}.json`)
  return existsSync(path) ? JSON.parse(readFileSync(path, 'utf8')).testResults : []
}

/** The failed tests of a file, or the file itself if it failed outside its tests. */
function failuresIn({ name, status, message, assertionResults }) {
  const file = relative('.', name)
  const tests = assertionResults.filter((test) => test.status === 'failed')
  if (status === 'failed' && tests.length === 0) return [{ title: file, messages: [message] }]
  return tests.map(({ fullName, failureMessages }) => ({ title: `${file}: ${fullName}`, messages: failureMessages }))
}

function count(result) {
  const { assertionResults } = result
  const passed = assertionResults.filter(({ status }) => status === 'passed').length
  const failed = assertionResults.filter(({ status }) => status === 'failed').length
  totals.passed += passed
  totals.failed += failuresIn(result).length
  totals.skipped += assertionResults.length - passed - failed
}

for (const script of scripts) {
  const first = readReport(script)
  const retry = readReport(`${script}.retry`)
  const retried = new Set(retry.map(({ name }) => name))
  // A retried file counts by its second result.
  for (const result of [...first.filter(({ name }) => !retried.has(name)), ...retry]) count(result)
  for (const { title, messages } of retry.flatMap(failuresIn))
    printFailure(`FAILED twice in ${script}: ${title}`, messages)
  for (const result of first) {
    const label = retried.has(result.name) ? 'FAILED at first' : 'FAILED'
    for (const { title, messages } of failuresIn(result)) printFailure(`${label} in ${script}: ${title}`, messages)
  }
}

const skipped = totals.skipped > 0 ? `, ${totals.skipped} skipped` : ''
print(`${totals.passed} passed, ${totals.failed} failed${skipped}`)
