// Prints each failed test with its error, then the totals of all reports (Vitest's JSON) as the last line.
import { readFileSync } from 'node:fs'
import { relative } from 'node:path'

const totals = { passed: 0, failed: 0, skipped: 0 }

const print = (line) => process.stdout.write(`${line}\n`)

function tell(script, what, messages) {
  print(`\nFAILED in ${script}: ${what}`)
  for (const message of messages) print(message.replace(/^/gm, '  '))
}

for (const path of process.argv.slice(2)) {
  const script = path.replace(/^.*\/|\.json$/g, '')
  const report = JSON.parse(readFileSync(path, 'utf8'))
  totals.passed += report.numPassedTests
  totals.failed += Math.max(report.numFailedTests, report.numFailedTestSuites > 0 ? 1 : 0)
  totals.skipped += report.numPendingTests
  for (const { name, status, message, assertionResults } of report.testResults) {
    const file = relative('.', name)
    const failed = assertionResults.filter((test) => test.status === 'failed')
    for (const test of failed) tell(script, `${file}: ${test.fullName}`, test.failureMessages)
    if (status === 'failed' && failed.length === 0) tell(script, file, [message])
  }
}

const skipped = totals.skipped > 0 ? `, ${totals.skipped} skipped` : ''
print(`${totals.passed} passed, ${totals.failed} failed${skipped}`)
