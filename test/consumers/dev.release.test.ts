/** `npm run dev` on a copy of this checkout. */
import { once } from 'node:events'
import { renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { readConfig } from '../../src/config/config.ts'
import { type Dev, startDev } from '../support/dev.ts'
import { openAdministration, until } from '../support/service.ts'

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

test('a module with a syntax error stops the service with its error until the next save', async () => {
  const before = dev.lines.length
  const save = () => dev.replace(problems, 'export class Problem', 'export klass Problem')
  await dev.waitForLine(save, /^The service exited \(exit code 1\)\. It starts again/)
  expect(dev.lines.slice(before).join('\n')).toMatch(/src\/contract\/problem\.ts:\d+(.|\n)*SyntaxError/)
  dev.replace(problems, 'export klass Problem', 'export class Problem')
  await untilServed('/v1/execution/flows')
})

test('a saved workflow is deployed without a restart, and an invalid one is reported while the last one stays', async () => {
  const { createAccount, close } = await openAdministration(readConfig({ DATA_DIR: join(dev.directory, 'data') }))
  const { key } = await createAccount().finally(close)
  const version = async () => {
    const headers = { authorization: `Bearer ${key}` }
    const response = await fetch(`${dev.executionUrl()}/v1/execution/workflows/count-words`, { headers })
    return ((await response.json()) as { version: string }).version
  }
  const workflow = 'examples/workflows/count-words.ts'
  const before = dev.lines.length
  await dev.waitForLine(() => dev.replace(workflow, "version: '1.0.0'", "version: '1.1.0'"), /^Deployed [0-9a-f]{12}: /)
  await until('the saved version is served', async () => (await version()) === '1.1.0')
  const refused = await dev.waitForLine(() => dev.replace(workflow, 'export default', 'export defalt'), /^Not deployed/)
  expect(refused).toMatch(/^Not deployed: examples\/workflows\/count-words\.ts:\d+ has a syntax error: /)
  expect(await version()).toBe('1.1.0')
  const fix = () =>
    dev.write(workflow, dev.read(workflow).replace('export defalt', 'export default').replace('1.1.0', '1.2.0'))
  await dev.waitForLine(fix, /^Deployed/)
  await until('the fixed version is served', async () => (await version()) === '1.2.0')
  expect(dev.lines.slice(before).filter((line) => line.startsWith('Restarting'))).toEqual([])
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
  const config = 'src/config/config.ts'
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
