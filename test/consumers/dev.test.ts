/** `npm run dev` on a copy of this checkout. */
import { once } from 'node:events'
import { renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Dev, startDev } from '../support/dev.ts'
import { until } from '../support/service.ts'

let dev: Dev
beforeAll(async () => {
  dev = await startDev()
})
afterAll(() => dev?.end())

const problems = 'src/contract/problem.ts'
const execution = 'openapi/execution.v1.yaml'

/** During a restart, connections are refused. */
const status = async (path: string) =>
  (await fetch(dev.executionUrl() + path, { headers: { Connection: 'close' } }).catch(() => undefined))?.status
const untilServed = (path: string) => until(`${path} is served`, async () => (await status(path)) === 401)
const untilTitle = (title: string) =>
  until(`"${title}" is served`, async () => {
    const response = await fetch(`${dev.executionUrl()}/nowhere`).catch(() => undefined)
    return ((await response?.json()) as { title?: string } | undefined)?.title === title
  })

test('a saved module is served, also when an editor replaces the file again and again', async () => {
  const line = await dev.waitForLine(() => dev.replace(problems, "'Not found'", "'Not here'"), /^Restarting/)
  expect(line).toContain(problems)
  await untilTitle('Not here')
  for (const title of ['Not this time', 'Not that time']) {
    const text = dev.read(problems).replace(/'Not (here|this time)'/, `'${title}'`)
    writeFileSync(join(dev.directory, `${problems}~`), text)
    renameSync(join(dev.directory, `${problems}~`), join(dev.directory, problems))
    await untilTitle(title)
  }
})

test('a saved document updates generated/ and is served', async () => {
  dev.replace(execution, '/v1/execution/workflows:', '/v1/execution/flows:')
  await untilServed('/v1/execution/flows')
  for (const file of ['document.json', 'types.ts', 'server.ts', 'client.ts']) {
    expect(dev.read(`generated/execution.v1/${file}`)).toContain('/v1/execution/flows')
  }
})

test.for([
  [
    'a module with a syntax error',
    problems,
    'export class Problem',
    'export klass Problem',
    /src\/contract\/problem\.ts:\d+(.|\n)*SyntaxError/,
  ],
  [
    'a workflow that does not load',
    'examples/workflows/count-words.ts',
    'export default',
    'export',
    /count-words\.ts failed to load: /,
  ],
] as const)('%s stops the service with its error until the next save', async ([, file, from, to, error]) => {
  const before = dev.lines.length
  await dev.waitForLine(() => dev.replace(file, from, to), /^The service exited \(exit code 1\)\. It starts again/)
  expect(dev.lines.slice(before).join('\n')).toMatch(error)
  dev.replace(file, to, from)
  await untilServed('/v1/execution/flows')
})

test('an invalid document is reported with its line, and the service goes on', async () => {
  const save = () => dev.replace(execution, 'operationId: getRun\n', 'operationID: getRun\n')
  expect(await dev.waitForLine(save, /^Not restarted/)).toMatch(
    /^Not restarted: openapi\/execution\.v1\.yaml:\d+: Property `operationID` is not expected here/,
  )
  expect(await status('/v1/execution/flows')).toBe(401)
  const fix = () => dev.replace(execution, 'operationID: getRun\n', 'operationId: getRun\n')
  await dev.waitForLine(fix, /^Restarting/)
  await untilServed('/v1/execution/flows')
})

test('a service that is blocked is replaced at the next save', async () => {
  const config = 'src/config.ts'
  await dev.waitForLine(() => dev.write(config, `${dev.read(config)}while (true);\n`), /^Restarting/)
  dev.replace(config, 'while (true);\n', '')
  await untilServed('/v1/execution/flows')
})

test('Ctrl-C leaves no process behind', async () => {
  // A terminal sends the signal to the whole process group.
  process.kill(-(dev.child.pid as number), 'SIGINT')
  expect(await once(dev.child, 'exit')).toEqual([0, null])
  await until('no process is left', () => !dev.anyAlive())
})

test('SIGKILL leaves no process behind', async () => {
  const other = await startDev()
  other.child.kill('SIGKILL')
  await until('no process is left', () => !other.anyAlive())
  await other.end()
})
