/** `accounts environments`, `--environment` of other commands, and `workflows promote`, while the service runs. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { send } from '../operations/requests.ts'
import { newInstallation } from '../support/installation.ts'
import { removeDirectory, temporaryDirectory } from '../support/service.ts'
import { waitLimits } from '../support/timeouts.ts'
import { writeModules } from '../support/worker.ts'

const module = (version: string, variables: string) => `import { defineWorkflow } from 'execution-service/workflow'
export default defineWorkflow({
  id: 'shop', version: '${version}', title: 'Shop', variables: ${variables}, output: {}, run: ({ variables }) => variables,
})
`
const anyOrder = '{ type: "object", properties: {} }'
const sizedOrder = '{ type: "object", properties: {}, required: ["size"] }'

test('an operator adds an environment, deploys to it, promotes what it serves, and removes it', async (context) => {
  const installation = await newInstallation()
  const exported = temporaryDirectory()
  context.onTestFinished(async () => {
    await installation.remove()
    removeDirectory(exported)
  })
  const service = await installation.start()
  const run = async (...args: string[]) => {
    const { code, stdout, stderr } = await installation.runCommand(...args)
    return { code, stdout: stdout.trim(), stderr: stderr.trim() }
  }
  const succeed = async (...args: string[]) => {
    const { code, stdout, stderr } = await run(...args)
    expect({ code, stderr }).toMatchObject({ code: 0 })
    return stdout
  }
  const [{ id: production }] = JSON.parse(await succeed('accounts', 'list', '--json'))
  expect(JSON.parse(await succeed('accounts', 'environments', 'list', '--json'))).toEqual([])
  const early = await run('keys', 'list', '--environment', 'staging')
  expect(early).toMatchObject({ code: 1, stderr: expect.stringContaining('no environment "staging". Add one') })
  const { id: staging } = JSON.parse(await succeed('accounts', 'environments', 'add', 'staging', '--json'))
  const listed = JSON.parse(await succeed('accounts', 'list', '--json'))
  expect(listed).toMatchObject([
    { id: production, environment: 'production', environmentOf: null },
    { id: staging, environment: 'staging', environmentOf: production },
  ])
  expect((await run('accounts', 'environments', 'add', 'Staging')).stderr).toContain('lower-case letters')

  const createKey = (...args: string[]) => succeed('keys', 'create', '--name', 'ci', ...args)
  const keys = [await createKey('--environment', 'staging'), await createKey()] as const
  const directory = await writeModules(context, { 'shop.mjs': module('1.0.0', anyOrder) })
  await succeed('workflows', 'deploy', directory, '--environment', 'staging')
  const queue = (key: string) =>
    send(service, 'queueRemoteRun', key, { path: { workflowId: 'shop' }, body: { variableData: {} } })
  const statuses = async () => [(await queue(keys[0])).status, (await queue(keys[1])).status]
  await expect.poll(statuses, waitLimits).toEqual([202, 404])

  const promote = (...args: string[]) => run('workflows', 'promote', '--from', 'staging', '--to', 'production', ...args)
  const promoted = await promote()
  expect(promoted).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(/^Promoted [0-9a-f]{12} from staging to production/),
  })
  await expect.poll(statuses, waitLimits).toEqual([202, 202])
  expect((await queue(keys[1])).body.environment).toBe('production')
  expect((await promote()).stdout).toMatch(/^Nothing has changed: production already serves/)

  const breaking = await writeModules(context, { 'shop.mjs': module('1.1.0', sizedOrder) })
  await succeed('workflows', 'deploy', breaking, '--environment', 'staging', '--allow-breaking')
  const refused = await promote()
  expect(refused.code).toBe(1)
  expect(refused.stderr).toContain('has the version 1.1.0 after 1.0.0, but breaks its callers:')
  expect(refused.stderr).toMatch(
    /The API key "ci" made \d+ calls? in the last 30 days that would be refused\.[\s\S]*Nothing was promoted\.$/,
  )
  const both = [JSON.parse((await promote('--allow-breaking', '--json')).stdout)]
  expect(both[0]).toMatchObject({
    changed: true,
    accountId: production,
    contentHash: expect.stringMatching(/^[0-9a-f]{64}$/),
  })
  await succeed('workflows', 'rollback', '--environment', 'production')
  expect((await queue(keys[1])).status).toBe(202)
  expect((await run('workflows', 'promote', '--from', 'production', '--to', 'production')).stderr).toContain(
    'the same environment',
  )
  expect((await run('workflows', 'list', '--url', service.executionUrl, '--environment', 'staging')).stderr).toContain(
    'Leave out --environment',
  )

  const target = join(exported, 'account')
  await succeed('accounts', 'export', target)
  expect(readdirSync(join(target, 'environments', 'staging'))).toContain('runs.jsonl')
  expect(readFileSync(join(target, 'environments', 'staging', 'accounts.jsonl'), 'utf8')).toContain(staging)

  const remove = (...args: string[]) => run('accounts', 'environments', 'remove', 'staging', ...args)
  expect((await remove('--confirm', 'production')).stderr).toContain('Repeat its name with --confirm')
  expect((await run('accounts', 'delete', '--account', staging, '--confirm', 'staging')).stderr).toContain(
    'accounts environments remove staging',
  )
  const receipt = JSON.parse((await remove('--confirm', 'staging', '--json')).stdout)
  expect(receipt).toMatchObject({ accountId: staging, environment: 'staging', left: 0 })
  expect((await queue(keys[0])).status).toBe(401)
  expect((await queue(keys[1])).body).not.toHaveProperty('environment')
})
