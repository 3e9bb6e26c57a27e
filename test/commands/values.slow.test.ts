/** The commands `secrets` and `settings`, and what `workflows deploy` says of those that are missing. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync } from 'node:fs'
import { text } from 'node:stream/consumers'
import { expect, test } from 'vitest'
import { send } from '../operations/requests.ts'
import { type Installation, newInstallation } from '../support/installation.ts'
import { refusedSettings } from '../support/refused-settings.ts'
import { main } from '../support/service.ts'
import { waitLimits } from '../support/timeouts.ts'
import { writeModules } from '../support/worker.ts'

const shop = `import { defineWorkflow } from 'execution-service/workflow'
export default defineWorkflow({
  id: 'shop', version: '1.0.0', title: 'Shop', variables: { type: 'object', examples: [{}] }, output: {},
  secrets: ['SHOP_TOKEN'], settings: { LIMIT: { type: 'integer' } },
  run: ({ secrets, settings }) => [secrets.SHOP_TOKEN, secrets.SHOP_TOKEN.length, settings.LIMIT],
})
`

/** Runs a command that reads its standard input. */
async function pipe({ settings }: Installation, input: string, ...args: string[]) {
  const child = spawn(process.execPath, [main, ...args], { env: settings, stdio: 'pipe' })
  child.stdin.end(input)
  const [stdout, stderr] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')])
  return { code: child.exitCode, stdout, stderr }
}

test('a deployment says what is missing, and a run starts when the commands have stored it', async (context) => {
  const installation = await newInstallation()
  context.onTestFinished(() => installation.remove())
  const account = await installation.createAccount()
  const directory = await writeModules(context, { 'shop.mjs': shop })
  const deploy = (...args: string[]) =>
    installation.runCommand('workflows', 'deploy', directory, '--account', account.id, ...args)
  const warning = (detail: string) => `Runs of shop will wait: ${detail}\n`
  const all = warning('The secret SHOP_TOKEN is missing.') + warning('The setting LIMIT is missing.')
  // The first process of the service decides on the key with which the store is encrypted.
  const tried = await deploy('--try')
  expect(tried).toMatchObject({ code: 0, stderr: '' })
  expect(tried.stdout).toContain('shop has no example, or declares secrets or settings: not tried.\nDeployed ')
  expect(readdirSync(installation.dataDirectory).filter((name) => name.includes('key'))).toEqual([])

  const service = await installation.start()
  expect(await deploy()).toMatchObject({ code: 0, stderr: all })
  const { ENCRYPTION_KEY = '' } = installation.settings
  installation.settings.ENCRYPTION_KEY = Buffer.alloc(32, 1).toString('base64')
  const unchecked =
    'The secrets and settings that workflows declare were not checked: The store was encrypted with another key'
  expect(await deploy()).toMatchObject({ code: 0, stderr: expect.stringContaining(unchecked) })
  installation.settings.ENCRYPTION_KEY = ENCRYPTION_KEY
  const path = { workflowId: 'shop' }
  const queued = await send(service, 'queueRemoteRun', account.key, { path, body: { variableData: {} } }).expect(202)
  const read = async () => (await send(service, 'getRun', account.key, { path: { runId: queued.body.id } })).body
  await expect.poll(read, waitLimits).toMatchObject({ waitingFor: 'secret' })
  const put = (kind: string, name: string, value: string) =>
    pipe(installation, value, kind, 'put', name, '--account', account.id)
  const token = 'canary-of-the-command'
  const stored = await put('secrets', 'SHOP_TOKEN', `${token}\n`)
  const sentence = 'Stored version 1 of SHOP_TOKEN. Later attempts get it, and runs that waited for it start now.\n'
  expect(stored).toEqual({ code: 0, stdout: sentence, stderr: '' })
  await put('settings', 'LIMIT', '"many"')
  const unfit = warning('The setting LIMIT does not fit the workflow: must be integer.')
  expect(await deploy()).toMatchObject({
    code: 0,
    stderr: unfit,
    stdout: expect.stringMatching(/^Nothing has changed/),
  })
  const asJson = JSON.parse((await deploy('--json')).stdout)
  expect(asJson.missing).toMatchObject([{ workflowId: 'shop', kind: 'setting', name: 'LIMIT' }])
  expect(await put('settings', 'LIMIT', '7')).toMatchObject({ stdout: expect.stringContaining('Stored version 2') })
  await expect.poll(read, waitLimits).toMatchObject({ status: 'succeeded', output: ['********', token.length, 7] })
  expect(await deploy()).toMatchObject({ code: 0, stderr: '' })

  const list = await installation.runCommand('secrets', 'list', '--account', account.id, '--json')
  expect(JSON.parse(list.stdout)).toMatchObject([{ name: 'SHOP_TOKEN', version: 1, workflows: ['shop'] }])
  expect(list.stdout).not.toContain(token)
  const removed = await installation.runCommand('secrets', 'delete', 'SHOP_TOKEN', '--account', account.id)
  expect(removed.stdout).toBe('Deleted. Later attempts do not get SHOP_TOKEN.\n')
  expect((await deploy()).stderr).toBe(warning('The secret SHOP_TOKEN is missing.'))
})

test('a deployment for all accounts names those that lack values, and knows an external store', async (context) => {
  const installation = await newInstallation()
  context.onTestFinished(() => installation.remove())
  const { id } = await installation.createAccount()
  await (await installation.start()).stop()
  const directory = await writeModules(context, { 'shop.mjs': shop, SHOP_TOKEN: 'from a file' })
  const { stderr } = await installation.runCommand('workflows', 'deploy', directory)
  expect(stderr).toContain(`Runs of shop will wait in the account ${id}: The secret SHOP_TOKEN is missing.\n`)
  installation.settings.SECRETS_DIR = directory
  const again = await installation.runCommand('workflows', 'deploy', directory)
  expect(again.stderr).toContain(`Runs of shop will wait in the account ${id}: The setting LIMIT is missing.\n`)
  expect(again.stderr).not.toContain('SHOP_TOKEN')
})

test('a value that cannot be stored is refused with what to do, and is not repeated', async (context) => {
  const installation = await newInstallation()
  context.onTestFinished(() => installation.remove())
  const refused = async (input: string, ...args: string[]) => {
    const { code, stdout, stderr } = await pipe(installation, input, ...args)
    expect([code, stdout]).toEqual([1, ''])
    return stderr
  }
  expect(await refused('abc', 'secrets', 'put', 'SHOP_TOKEN')).toContain(
    'The secret must NOT have fewer than 4 characters.',
  )
  expect(await refused('canary', 'secrets', 'put', 'shop')).toContain('shop is no name of a secret')
  const setting = await refused('canary', 'settings', 'put', 'SHOP_URL')
  expect(setting).toContain('The setting is not JSON')
  expect(setting).not.toContain('canary')
  for (const [text, detail] of refusedSettings)
    expect(await refused(text, 'settings', 'put', 'SHOP_URL')).toContain(`${detail}.`)
  expect(await refused('', 'secrets', 'delete', 'SHOP_TOKEN')).toContain('The account has no secret SHOP_TOKEN.')
})
