/** Follows docs/adding-an-operation.md literally on a copy of this checkout. Most of the time is spent in `tsc` and tests. */
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Checkout, copyCheckout } from '../support/checkout.ts'
import { type CommandLine, commandLine } from './command-line.ts'
import { insertBlock, outputPattern, readWalkthrough, type Step } from './walkthrough.ts'

const guide = readFileSync('docs/adding-an-operation.md', 'utf8')

let copy: Checkout
let commands: CommandLine

beforeAll(async () => {
  copy = copyCheckout()
  // As if everything had been released.
  copy.write('openapi/released/execution.v1.json', copy.read('generated/execution.v1/document.json'))
  commands = await commandLine(copy.directory)
})
afterAll(async () => {
  await commands?.stop()
  copy?.remove()
})

describe.each(readWalkthrough(guide))('$title', ({ steps }) => {
  test.each(steps.map((step) => ({ name: titleFor(step), step })))('$name', { timeout: 300_000 }, ({ step }) =>
    follow(step),
  )
})

test('the docs show the operation with its samples', async () => {
  expect((await commands.run('npm run --silent docs')).code).toBe(0)
  const files = readdirSync(join(copy.directory, 'dist/docs')).map((file) => copy.read(`dist/docs/${file}`))
  for (const text of ['Count unfinished runs', 'await client.countUnfinishedRuns()']) {
    expect(files.some((file) => file.includes(text))).toBe(true)
  }
})

function titleFor(step: Step): string {
  if (step.kind === 'run') return `$ ${step.command}`
  if (step.kind === 'create') return `create ${step.file}`
  return step.kind === 'append' ? `append to ${step.file}` : `in ${step.file}, ${step.side} ${step.line}`
}

async function follow(step: Step): Promise<void> {
  if (step.kind === 'run') return expectOutput(step.command, step.output)
  const path = join(copy.directory, step.file)
  mkdirSync(join(path, '..'), { recursive: true })
  if (step.kind === 'create') writeFileSync(path, step.text)
  else if (step.kind === 'append') writeFileSync(path, `${copy.read(step.file)}\n${step.text}`)
  else writeFileSync(path, insertBlock(copy.read(step.file), step))
  commands.filesHaveChanged()
}

async function expectOutput(command: string, expected: string): Promise<void> {
  const { code, output } = await commands.run(command)
  expect(output.trim()).toMatch(outputPattern(expected))
  // A command that prints an error must also fail.
  expect(code === 0, output).toBe(!/^error:|: error /m.test(expected))
}
