/** The `runs` commands do and show the same in the store as over the API. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Installation, newInstallation, runCommand, type ServiceProcess } from '../support/installation.ts'
import type { TestAccount } from '../support/service.ts'

let installation: Installation
let service: ServiceProcess
let account: TestAccount

beforeAll(async () => {
  installation = await newInstallation()
  service = await installation.start()
  account = await installation.createAccount()
})
afterAll(() => installation.remove())

const doors = ['store', 'url'] as const

/** Runs a command of the test account, in the store or with `--url`. */
async function run(door: (typeof doors)[number], ...args: string[]) {
  const place = door === 'url' ? ['--url', service.executionUrl] : ['--account', account.id]
  const environment = door === 'url' ? { API_KEY: account.key } : {}
  return runCommand(['runs', ...args, ...place], { ...installation.settings, ...environment })
}

test.each(doors)('runs are queued, followed, listed, shown, repeated and cancelled by the %s', async (door) => {
  const variables = ['--variables', '{"name": "Ada"}', '--tag', `by-${door}`]
  const followed = await run(door, 'queue', 'greet', ...variables, '--follow')
  expect(followed).toMatchObject({ code: 0, stderr: '' })
  expect(followed.stdout).toMatch(/ queued\n(.*\n)*.* running\n(.*\n)*.* succeeded\n/)
  const [, id = ''] = /^run +(\S+)$/m.exec(followed.stdout) ?? []
  const listed = JSON.parse((await run(door, 'list', '--tag', `by-${door}`, '--json')).stdout)
  expect(listed).toMatchObject([{ id, workflowId: 'greet', status: 'succeeded' }])
  expect((await run(door, 'list', '--status', 'succeeded')).stdout).toContain(id)
  const again = JSON.parse((await run(door, 'rerun', id, '--json')).stdout)
  expect(again).toMatchObject({ rerunOf: id, variableData: listed[0].variableData })
  expect(await run(door, 'follow', again.id)).toMatchObject({ code: 0 })
  expect((await run(door, 'cancel', again.id)).stdout).toBe(`Run ${again.id} has ended as succeeded already.\n`)
  expect(JSON.parse((await run(door, 'show', again.id, '--json')).stdout)).toMatchObject({ status: 'succeeded' })
  const invalid = await run(door, 'queue', 'greet', '--variables', '{"nam": 1}')
  expect(invalid).toMatchObject({ code: 1, stdout: '', stderr: expect.stringContaining('/nam') })
  const missing = await run(door, 'show', '01a22374-ebc5-772f-98f5-fcaff5286e7e')
  expect(missing).toMatchObject({ code: 1, stderr: expect.stringMatching(/run/) })
})

test('a wrong option is named, and `--version` prints the version', async () => {
  const failed = await run('store', 'queue', 'greet', '--variables', '[]')
  expect(failed.stderr).toBe('--variables must be a JSON object, such as \'{"path": "README.md"}\'.\n')
  const option = await run('store', 'queue', 'greet', '--option', 'prioriti=1')
  expect(option.stderr).toMatch(/^--option is "prioriti=1": give a name and a value\. Names are delaySeconds, /)
  for (const door of doors) {
    const refused = await run(door, 'queue', 'greet', '--variables', '{"name": "Ada"}', '--option', 'priority=99')
    expect(refused).toMatchObject({ code: 1, stderr: expect.stringContaining('priority') })
  }
  const status = await run('store', 'list', '--status', 'broken')
  expect(status.stderr).toMatch(/^--status is "broken": give one of queued, running, /)
  expect((await installation.runCommand('--version')).stdout).toMatch(/^\d+\.\d+\.\d+\n$/)
})
