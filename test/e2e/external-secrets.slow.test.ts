/** Runs get the secrets of an external Vault: they wait while it cannot be read, and see what changes there. */
import { writeFileSync } from 'node:fs'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { putSecret, putSetting, queueRun, send } from '../operations/requests.ts'
import { newInstallation } from '../support/installation.ts'
import { removeDirectory, temporaryDirectory } from '../support/service.ts'
import { waitLimits } from '../support/timeouts.ts'

test('a run waits while Vault cannot be read, says why, and gets the secret without a restart', async (context) => {
  const directory = temporaryDirectory()
  context.onTestFinished(() => removeDirectory(directory))
  const VAULT_TOKEN_FILE = join(directory, 'token')
  writeFileSync(VAULT_TOKEN_FILE, 'hvs.expired\n')
  /** By path, as its key-value engine has them. */
  const stored = new Map<string, string>()
  let responds = false
  const respond = ({ url = '', headers, socket }: IncomingMessage, response: ServerResponse) => {
    if (!responds) return void socket.destroy()
    const json = (status: number, body: unknown) => void response.writeHead(status).end(JSON.stringify(body))
    if (headers['x-vault-token'] !== 'hvs.renewed') return json(403, { errors: ['permission denied'] })
    if (!url.startsWith('/v1/secret/data/')) return json(404, { errors: [`no handler for route "${url}"`] })
    const value = stored.get(url.slice('/v1/secret/data/'.length))
    if (value === undefined) return json(404, { errors: [] })
    json(200, { data: { data: { SHOP_TOKEN: value }, metadata: { version: 1, destroyed: false } } })
  }
  const vault = createServer(respond)
  await new Promise<void>((resolve) => vault.listen(0, '127.0.0.1', resolve))
  context.onTestFinished(() => void vault.close())
  const WORKFLOWS_DIR = fileURLToPath(new URL('../operations/declaring-workflows', import.meta.url))
  const VAULT_ADDR = `http://127.0.0.1:${(vault.address() as AddressInfo).port}`
  const settings = { WORKFLOWS_DIR, VAULT_ADDR, VAULT_TOKEN_FILE, VAULT_SECRETS_PATH: 'secret/shops/{account}' }
  // Workers in separate processes read the settings from their environment.
  const installation = await newInstallation(settings)
  context.onTestFinished(() => installation.remove())
  const account = await installation.createAccount()
  const { executionUrl } = await installation.start()
  const service = { executionUrl, browserContextUrl: executionUrl, change: async () => {} }
  await putSetting(service, account)
  const queue = () =>
    queueRun(service, account, { path: { workflowId: 'shop' }, query: '', body: { variableData: {} } })
  const becomes = (runId: string, run: object) =>
    expect
      .poll(async () => (await send(service, 'getRun', account.key, { path: { runId } })).body, waitLimits)
      .toMatchObject(run)
  const waits = (message: string) => ({ attempts: 0, waitingFor: 'secret', waitingForDetail: { message } })

  const runId = await queue()
  await becomes(runId, waits('Vault closed the connection before it responded (UND_ERR_SOCKET).'))
  responds = true
  await becomes(runId, waits('Vault refuses the token (403).'))
  writeFileSync(VAULT_TOKEN_FILE, 'hvs.renewed\n')
  await becomes(runId, waits('The secret SHOP_TOKEN is missing.'))
  const [first, second, own] = ['canary-of-vault-1', 'canary-of-vault-version-2', 'canary-of-the-account-3']
  stored.set(`shops/${account.id}`, first)
  const got = (secret: string) => ({ length: secret.length, last: secret.at(-1), said: 'The token is ********.' })
  await becomes(runId, { status: 'succeeded', output: got(first) })
  stored.set(`shops/${account.id}`, second)
  await becomes(await queue(), { status: 'succeeded', output: got(second) })
  await putSecret(service, account, 'SHOP_TOKEN', own)
  await becomes(await queue(), { status: 'succeeded', output: got(own) })
  const { text } = await send(service, 'streamRunEvents', account.key, { path: { runId } })
  for (const secret of [first, second, own, 'hvs.']) expect(text).not.toContain(secret)
})
