// Prints the failed test files of a Vitest JSON report, if all of them start processes (PostgreSQL too), as most slow tests do,
// and there are at most six.
import { readFileSync } from 'node:fs'
import { relative } from 'node:path'

const filesMax = 6
const startsProcesses = /^test\/((e2e|worker|browser|commands|consumers|faults|storage)\/|.*\.slow\.test\.ts$)/

const { testResults } = JSON.parse(readFileSync(process.argv[2], 'utf8'))
const failed = testResults.filter(({ status }) => status === 'failed').map(({ name }) => relative('.', name))
const files = [...new Set(failed)]
if (files.length <= filesMax && files.every((file) => startsProcesses.test(file)))
  for (const file of files) process.stdout.write(`${file}\n`)
