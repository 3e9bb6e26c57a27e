/** `workflows deploy`, `list` and `rollback` while a service runs: what its API serves a second later. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { newDirectory } from '../support/domain.ts'
import { type Installation, newInstallation, type ServiceProcess } from '../support/installation.ts'
import { type TestAccount, until } from '../support/service.ts'

let installation: Installation
let service: ServiceProcess
let account: TestAccount

beforeAll(async () => {
  installation = await newInstallation()
  service = await installation.startOnly('execution')
  account = await installation.createAccount()
})
afterAll(() => installation.remove())

const moduleText = (id: string, version: string, more = '') =>
  `export default { id: '${id}', version: '${version}', title: 'A test', variables: { type: 'object' }, output: {}, run: () => 1, ${more} }\n`

async function write(modules: Record<string, string>): Promise<string> {
  const directory = await newDirectory({ onTestFinished })
  for (const [name, text] of Object.entries(modules)) writeFileSync(join(directory, name), text)
  return directory
}

async function command(...args: string[]) {
  const { code, stdout, stderr } = await installation.runCommand('workflows', ...args)
  expect(stderr).toBe('')
  expect(code).toBe(0)
  return stdout
}

/** The versions that the API serves, by workflow. */
async function served({ key }: TestAccount): Promise<Record<string, string>> {
  const headers = { authorization: `Bearer ${key}` }
  const response = await fetch(`${service.executionUrl}/v1/execution/workflows`, { headers })
  const { data } = (await response.json()) as { data: { id: string; version: string }[] }
  return Object.fromEntries(data.map(({ id, version }) => [id, version]))
}

/** Waits at most a second, from when the command has ended. */
async function expectServed(account: TestAccount, versions: Record<string, string>): Promise<void> {
  const deadline = performance.now() + 1000
  const found = await until('the deployment is served', async () => {
    const current = await served(account)
    return (JSON.stringify(current) === JSON.stringify(versions) || performance.now() > deadline) && current
  })
  expect(found).toEqual(versions)
}

test('a running service serves a deployment within a second, and the one before after a rollback', async () => {
  const first = await write({ 'a.mjs': moduleText('a', '1'), 'b.mjs': moduleText('b', '1') })
  const second = await write({ 'a.mjs': moduleText('a', '2') })
  expect(await command('deploy', first)).toContain('  a 1 is new\n  b 1 is new\n')
  await expectServed(account, { a: '1', b: '1' })
  const deployed = JSON.parse(await command('deploy', second, '--json'))
  expect(deployed).toMatchObject({ changed: true, accountId: null, workflows: [{ id: 'a', version: '2' }] })
  await expectServed(account, { a: '2' })
  expect(JSON.parse(await command('deploy', second, '--json'))).toMatchObject({ changed: false })
  expect(JSON.parse(await command('list', '--json'))).toMatchObject([{ id: 'a', deploymentId: deployed.deploymentId }])
  expect(JSON.parse(await command('rollback', '--json'))).toMatchObject({ deploymentId: deployed.previousDeploymentId })
  await expectServed(account, { a: '1', b: '1' })
})

test('a directory that is refused changes nothing, and the command says why', async () => {
  const before = await served(account)
  const directory = await write({ 'a.mjs': moduleText('a', '9'), 'b.mjs': moduleText('b', '9', '\ncolour: 1') })
  const { code, stdout, stderr } = await installation.runCommand('workflows', 'deploy', directory)
  expect({ code, stdout }).toEqual({ code: 1, stdout: '' })
  expect(stderr).toMatch(
    /^\S+b\.mjs:2 is not a valid workflow: colour is not an option of defineWorkflow: the options are .+\.\n$/,
  )
  expect(await served(account)).toEqual(before)
})

test('a version that breaks callers is refused with each change and their API keys, until its major version rises', async () => {
  const versionOf = (version: string, properties: object, output: object) => {
    const schemas = `variables: { type: 'object', additionalProperties: false, properties: ${JSON.stringify(properties)} },
      output: ${JSON.stringify(output)}`
    return { 'sum.mjs': moduleText('sum', version, schemas).replace("variables: { type: 'object' }, output: {}, ", '') }
  }
  const numbers = { list: { type: 'array' }, round: { type: 'boolean' } }
  await command('deploy', await write(versionOf('1.0.0', numbers, { type: 'number' })))
  await expectServed(account, { sum: '1.0.0' })
  const { status } = await fetch(`${service.executionUrl}/v1/execution/queue-remote/sum`, {
    method: 'PUT',
    headers: { authorization: `Bearer ${account.key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ variableData: { round: true } }),
  })
  expect(status).toBe(202)
  const { round: _, ...others } = numbers
  const { code, stdout, stderr } = await installation.runCommand(
    'workflows',
    'deploy',
    await write(versionOf('1.1.0', others, { type: ['number', 'null'] })),
  )
  expect({ code, stdout }).toEqual({ code: 1, stdout: '' })
  expect(stderr).toBe(
    [
      'The workflow sum has the version 1.1.0 after 1.0.0, but breaks its callers:',
      '  `variables` no longer accepts the member `round`. Requests that were accepted are now rejected.',
      '  `output` can also be `null`. Clients of the last release receive what they do not know.',
      '  The API key "test" made 1 call in the last 30 days that would be refused.',
      'Set its version to 2.0.0, or keep what its callers use. Nothing was deployed.\n',
    ].join('\n'),
  )
  expect(await served(account)).toEqual({ sum: '1.0.0' })
  await command('deploy', await write(versionOf('2.0.0', others, { type: ['number', 'null'] })))
  await expectServed(account, { sum: '2.0.0' })
})

test('a deployment for an account is seen by that account alone', async () => {
  const other = await installation.createAccount()
  const all = await served(other)
  const directory = await write({ 'own.mjs': moduleText('own', '1') })
  await command('deploy', directory, '--account', account.id)
  await expectServed(account, { ...all, own: '1' })
  expect(await served(other)).toEqual(all)
  const listed = JSON.parse(await command('list', '--account', other.id, '--json'))
  expect(listed.map(({ id }: { id: string }) => id)).toEqual(Object.keys(all))
  const { code, stderr } = await installation.runCommand('workflows', 'rollback', '--account', other.id)
  expect({ code, stderr }).toEqual({
    code: 1,
    stderr: 'The account has no earlier deployment to return to: deploy one with `workflows deploy DIR`.\n',
  })
})

test('a start deploys its directory unless it was the last one, so that a rollback survives a restart', async () => {
  // Without the workflows that were called, which a start would keep.
  const idle = await write({ 'idle.mjs': moduleText('idle', '1') })
  const { code, stderr } = await installation.runCommand('workflows', 'deploy', idle, '--allow-breaking')
  expect([code, stderr]).toEqual([0, expect.stringContaining('The workflow sum is missing')])
  await service.stop()
  service = await installation.startOnly('execution')
  const { greet } = await served(account)
  expect(greet).toBe('1.0.0')
  await command('rollback')
  const rolledBack = await served(account)
  await service.stop()
  service = await installation.startOnly('execution')
  expect(await served(account)).toEqual(rolledBack)
  expect(service.log.map(({ msg }) => msg)).toContain('WORKFLOWS_DIR was rolled back and is not deployed again')
})
