/** An operator's commands for API keys, with parallel processes. `test/domain/api-keys/api-keys.test.ts` has the rules. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Installation, newInstallation, type ServiceProcess } from '../support/installation.ts'
import { clientOf } from './caller.ts'

let installation: Installation
let service: ServiceProcess

beforeAll(async () => {
  installation = await newInstallation()
  service = await installation.start()
})
afterAll(() => installation.remove())

test('an operator limits keys to scopes only in an account with scopes enabled', async () => {
  const created = await installation.runCommand('accounts', 'create', '--name', 'With scopes', '--scopes', '--json')
  const { id } = JSON.parse(created.stdout)
  const key = async (...args: string[]) =>
    installation.runCommand('keys', 'create', '--name', 'k', '--account', id, '--json', ...args)
  const { value, scopes } = JSON.parse((await key('--scopes', 'runs:read,workflows:read')).stdout)
  expect(scopes).toEqual(['runs:read', 'workflows:read'])
  const client = clientOf(service, value)
  expect((await client.listRuns()).response.status).toBe(200)
  const body = { variableData: { name: 'Ada' } }
  const refused = await client.queueRemoteRun({ params: { path: { workflowId: 'greet' } }, body })
  expect(refused.error).toMatchObject({ status: 403, title: 'Forbidden' })

  const restricted = await key('--scopes', 'runs:write,runs:read', '--workflows', 'greet, approve')
  expect(JSON.parse(restricted.stdout)).toMatchObject({ workflows: ['greet', 'approve'] })
  const worker = clientOf(service, JSON.parse(restricted.stdout).value)
  expect((await worker.listRuns({ params: { query: { workflowId: 'greet' } } })).response.status).toBe(200)
  expect((await worker.listRuns()).response.status).toBe(403)
  const listed = await installation.runCommand('keys', 'list', '--account', id)
  expect(listed.stdout).toMatch(/ runs:write,runs:read +greet,approve /)
  expect(await key('--workflows', 'greet')).toMatchObject({
    ...{ code: 1, stdout: '' },
    stderr: expect.stringMatching(/^A key that is restricted to workflows needs scopes\. Choose from .*\.\n$/),
  })

  const unknown = await key('--scopes', 'runs:fly')
  expect(unknown).toMatchObject({
    code: 1,
    stdout: '',
    stderr: expect.stringMatching(/^Unknown scope "runs:fly"\. Choose from .*\.\n$/),
  })
  const { id: without } = await installation.createAccount({ scopesEnabled: false })
  const args = ['keys', 'create', '--name', 'k', '--account', without, '--scopes', 'runs:read']
  expect(await installation.runCommand(...args)).toMatchObject({
    code: 1,
    stdout: '',
    stderr: 'Scopes are off for this account. An admin turns them on in the dashboard, under Settings → General.\n',
  })
})

test('an operator creates at most five keys with parallel commands, and one more after a deletion', async () => {
  const account = await installation.runCommand('accounts', 'create', '--name', 'Full', '--json')
  const { id } = JSON.parse(account.stdout)
  const create = () => installation.runCommand('keys', 'create', '--name', 'k', '--account', id, '--json')
  const results = await Promise.all(Array.from({ length: 6 }, create))
  const created = results.filter(({ code }) => code === 0)
  const refused = results.filter(({ code }) => code === 1)
  expect(created).toHaveLength(5)
  const sentence = expect.stringMatching(/^This user has 5 API keys, which is the limit\. Delete one first\. /)
  expect(refused.map(({ stderr }) => stderr)).toEqual([sentence])
  const listed = await installation.runCommand('keys', 'list', '--account', id, '--json')
  expect(JSON.parse(listed.stdout)).toHaveLength(5)
  await installation.runCommand('keys', 'delete', JSON.parse(created[0]?.stdout ?? '').id, '--account', id)
  expect((await create()).code).toBe(0)
})
