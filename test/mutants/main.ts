/**
 * Plants each mutant alone in a copy of the checkout, runs its tests there, and prints which mutants survived:
 * `npm run test:mutants`, or `npm run test:mutants -- webhooks` for those whose file or text contains the argument. The
 * tests must pass without a mutant.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { basename, join } from 'node:path'
import { type Checkout, copyCheckout } from '../support/checkout.ts'
import { type Mutant, mutants } from './mutants.ts'

/** The part of vitest's JSON report that is read. */
interface Report {
  testResults: { name: string; assertionResults: { title: string; status: string }[] }[]
}

const print = (line: string) => process.stdout.write(`${line}\n`)

/** @returns the first test that failed. */
async function findFailure(
  { directory, read, write }: Checkout,
  tests: readonly string[],
): Promise<string | undefined> {
  write('report.json', '')
  const set = tests.some((path) => /\.(slow|release)\./.test(path)) ? 'all' : 'quick'
  // A test that fails by chance kills no mutant.
  const options = ['run', '--bail=1', '--retry=1', '--reporter=json', `--outputFile=${join(directory, 'report.json')}`]
  const command = [join(directory, 'node_modules/vitest/vitest.mjs'), ...options, ...tests]
  const env = { ...process.env, TEST_SET: set }
  await once(spawn(process.execPath, command, { cwd: directory, env, stdio: 'ignore' }), 'close')
  const report: Report = JSON.parse(read('report.json'))
  const results = report.testResults.flatMap(({ name, assertionResults }) =>
    assertionResults.map(({ title, status }) => ({ status, text: `${basename(name)}: ${title}` })),
  )
  if (results.length === 0) throw new Error(`No test ran of ${tests.join(', ')}.`)
  return results.find(({ status }) => status === 'failed')?.text
}

async function plant(checkout: Checkout, { file, from, to, tests }: Mutant): Promise<string | undefined> {
  const text = checkout.read(file)
  checkout.replace(file, from, to)
  try {
    return await findFailure(checkout, tests)
  } finally {
    checkout.write(file, text)
  }
}

const [wanted = ''] = process.argv.slice(2)
const selected = mutants.filter(({ file, from }) => `${file} ${from}`.includes(wanted))
let killed = 0
const checkout = copyCheckout()
try {
  for (const mutant of selected) {
    const failure = await plant(checkout, mutant)
    if (failure !== undefined) killed += 1
    print(`${failure === undefined ? 'survived' : 'killed  '} ${mutant.kind.padEnd(12)} ${mutant.file}: ${mutant.from}`)
    if (failure !== undefined) print(`         ${failure}`)
  }
} finally {
  checkout.remove()
}
print(`${killed} of ${selected.length} killed`)
if (killed < selected.length) process.exitCode = 1
