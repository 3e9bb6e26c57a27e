// Prints the test files of a report (Vitest's JSON) that failed, if they are few: many are no chance.
import { readFileSync } from 'node:fs'
import { relative } from 'node:path'

const filesMax = 3

const { testResults } = JSON.parse(readFileSync(process.argv[2], 'utf8'))
const failed = testResults.filter(({ status }) => status === 'failed').map(({ name }) => relative('.', name))
const files = [...new Set(failed)]
if (files.length <= filesMax) for (const file of files) process.stdout.write(`${file}\n`)
