/** Stores of secrets outside of the service: a mounted directory or file, and Vault by its documented responses. */
import { execFileSync } from 'node:child_process'
import { chmodSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { readConfig } from '../../../src/config/config.ts'
import { createSecretStore } from '../../../src/domain/account-values/secret-stores.ts'
import { removeDirectory, temporaryDirectory } from '../../support/service-storage.ts'

function newDirectory(): string {
  const directory = temporaryDirectory()
  onTestFinished(() => removeDirectory(directory))
  return directory
}

const account = '0198f2c4-1a20-7b11-8c22-5d3e6f7a8b90'

const read = async (environment: NodeJS.ProcessEnv, names: string[], accountId = account) => {
  const store = createSecretStore(readConfig(environment))
  return Object.fromEntries((await store?.read(accountId, names)) ?? [])
}

test('a mounted directory has a file of each secret, which is read at each attempt', async () => {
  const directory = newDirectory()
  const environment = { SECRETS_DIR: directory }
  writeFileSync(join(directory, 'SHOP_TOKEN'), 'first\n')
  expect(await read(environment, ['SHOP_TOKEN', 'OTHER'])).toEqual({ SHOP_TOKEN: 'first' })
  // Kubernetes replaces a link to a directory of links.
  mkdirSync(join(directory, '..data'))
  writeFileSync(join(directory, '..data', 'OTHER'), 'two\nlines')
  symlinkSync(join('..data', 'OTHER'), join(directory, 'OTHER'))
  writeFileSync(join(directory, 'SHOP_TOKEN'), 'second')
  expect(await read(environment, ['SHOP_TOKEN', 'OTHER'])).toEqual({ SHOP_TOKEN: 'second', OTHER: 'two\nlines' })
})

test('each account has its directory if the setting says so', async () => {
  const directory = newDirectory()
  mkdirSync(join(directory, account))
  writeFileSync(join(directory, account, 'SHOP_TOKEN'), 'of one account')
  const environment = { SECRETS_DIR: join(directory, '{account}') }
  expect(await read(environment, ['SHOP_TOKEN'])).toEqual({ SHOP_TOKEN: 'of one account' })
  expect(await read(environment, ['SHOP_TOKEN'], '0198f2c4-1a20-7b11-8c22-000000000000')).toEqual({})
})

test('what is no file of a bounded size is refused, and stops nothing', async () => {
  const directory = newDirectory()
  const environment = { SECRETS_DIR: directory }
  mkdirSync(join(directory, 'FOLDER'))
  execFileSync('mkfifo', [join(directory, 'PIPE')])
  symlinkSync('/dev/zero', join(directory, 'DEVICE'))
  writeFileSync(join(directory, 'LARGE'), 'a'.repeat(2 ** 20 + 1))
  writeFileSync(join(directory, 'LONG'), 'a'.repeat(16_385))
  writeFileSync(join(directory, 'SHORT'), 'abc')
  for (const name of ['FOLDER', 'PIPE', 'DEVICE'])
    await expect(read(environment, [name])).rejects.toThrow(`The secret ${name} in SECRETS_DIR is no file.`)
  await expect(read(environment, ['LARGE'])).rejects.toThrow('has more than 1048576 bytes')
  for (const name of ['LONG', 'SHORT'])
    await expect(read(environment, [name])).rejects.toThrow('is no text of 4 to 16384 characters')
})

test.skipIf(process.getuid?.() === 0)('a file that cannot be read is named', async () => {
  const directory = newDirectory()
  writeFileSync(join(directory, 'SHOP_TOKEN'), 'token')
  chmodSync(join(directory, 'SHOP_TOKEN'), 0)
  await expect(read({ SECRETS_DIR: directory }, ['SHOP_TOKEN'])).rejects.toThrow('cannot be read (EACCES)')
})

test('a mounted file has an object of secrets; an error does not repeat its text', async () => {
  const path = join(newDirectory(), 'secrets.json')
  const environment = { SECRETS_FILE: path }
  expect(await read(environment, ['SHOP_TOKEN'])).toEqual({})
  writeFileSync(path, '{"SHOP_TOKEN": "from a file", "NUMBER": 7}')
  expect(await read(environment, ['SHOP_TOKEN', 'OTHER', 'constructor'])).toEqual({ SHOP_TOKEN: 'from a file' })
  await expect(read(environment, ['NUMBER'])).rejects.toThrow('The secret NUMBER in the external store is no text')
  for (const text of ['{"SHOP_TOKEN": "canary', '["canary"]', '']) {
    writeFileSync(path, text)
    const error = await read(environment, ['SHOP_TOKEN']).catch((each: Error) => each)
    expect(String(error)).toBe('Error: SECRETS_FILE is no JSON object of secrets by their names.')
  }
})

type Respond = (request: IncomingMessage, response: ServerResponse) => void

/** A server that responds as Vault's documentation says. */
async function startVault(respond: Respond): Promise<NodeJS.ProcessEnv> {
  const server = createServer(respond)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  const VAULT_ADDR = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return { VAULT_ADDR, VAULT_TOKEN: 'hvs.canary', VAULT_SECRETS_PATH: 'secret/shops/{account}' }
}

/** The example of "Read secret version" in Vault's documentation of KV version 2, with other keys. */
const secretVersion = {
  data: {
    data: { SHOP_TOKEN: 'from Vault', NUMBER: 7 },
    metadata: {
      created_time: '2018-03-22T02:24:06.945319214Z',
      custom_metadata: null,
      deletion_time: '',
      destroyed: false,
      version: 2,
    },
  },
}

/** The example of a deleted version, which comes with 404. */
const deletedVersion = {
  data: {
    data: null,
    metadata: {
      created_time: '2018-03-22T02:24:06.945319214Z',
      custom_metadata: null,
      deletion_time: '2018-03-22T02:36:43.986212308Z',
      destroyed: false,
      version: 2,
    },
  },
}

const json = (status: number, body: unknown) => (response: ServerResponse) => {
  response.writeHead(status, { 'Content-Type': 'application/json' }).end(JSON.stringify(body))
}

test('Vault gets the token and the namespace, and has the secrets at the path of the account', async () => {
  const requests: unknown[] = []
  const environment = await startVault(({ method, url, headers }, response) => {
    requests.push([method, url, headers['x-vault-token'], headers['x-vault-namespace']])
    json(200, secretVersion)(response)
  })
  const tokenFile = join(newDirectory(), 'token')
  writeFileSync(tokenFile, 'hvs.file\n')
  expect(await read({ ...environment, VAULT_NAMESPACE: 'team/a' }, ['SHOP_TOKEN', 'OTHER'])).toEqual({
    SHOP_TOKEN: 'from Vault',
  })
  await read({ ...environment, VAULT_TOKEN: '', VAULT_TOKEN_FILE: tokenFile }, ['SHOP_TOKEN'])
  const url = `/v1/secret/data/shops/${account}`
  expect(requests).toEqual([
    ['GET', url, 'hvs.canary', 'team/a'],
    ['GET', url, 'hvs.file', undefined],
  ])
  await expect(read(environment, ['NUMBER'])).rejects.toThrow('is no text')
})

test.each([
  ['nothing at the path', { errors: [] }],
  ['a deleted version', deletedVersion],
])('Vault has no secret if there is %s', async (_, body) => {
  expect(await read(await startVault((_request, response) => json(404, body)(response)), ['SHOP_TOKEN'])).toEqual({})
})

const noMount = 'Vault has no such mount (404): check VAULT_SECRETS_PATH.'

test.each([
  [403, { errors: ['permission denied'] }, 'Vault refuses the token (403).'],
  [404, { errors: ['no handler for route "secrets/data/shops". route entry not found.'] }, noMount],
  [503, { errors: ['Vault is sealed'] }, 'Vault is sealed or under maintenance (503).'],
  [307, { errors: [] }, 'Vault responds with 307.'],
  [200, { data: { SHOP_TOKEN: 'of version 1' } }, 'Vault responds with no secret of a key-value engine of version 2.'],
  [200, 'canary', 'Vault responds with no secret of a key-value engine of version 2.'],
])('Vault that responds with %s is a problem that says what to do', async (status, body, message) => {
  const environment = await startVault((_request, response) => json(status, body)(response))
  const error = await read(environment, ['SHOP_TOKEN']).catch((each: Error) => each)
  expect(String(error)).toBe(`Error: ${message}`)
})

test('Vault that is silent, or ends the connection, or sends too much, is a problem', async () => {
  const silent = await startVault(() => {})
  await expect(read(silent, ['SHOP_TOKEN'])).rejects.toThrow('Vault does not respond within 5 s.')
  const ending = await startVault(({ socket }) => void socket.destroy())
  await expect(read(ending, ['SHOP_TOKEN'])).rejects.toThrow(
    'Vault closed the connection before it responded (UND_ERR_SOCKET).',
  )
  const endless = await startVault((_request, response) => void response.end('a'.repeat(5 * 2 ** 20)))
  await expect(read(endless, ['SHOP_TOKEN'])).rejects.toThrow('Vault responds with more than 4194304 bytes.')
}, 20_000)

test.each([
  [{ SECRETS_DIR: 'a', SECRETS_FILE: 'b' }, 'SECRETS_DIR and SECRETS_FILE are both set: unset one of them.'],
  [{ VAULT_ADDR: 'http://vault', VAULT_SECRETS_PATH: 'secret/a' }, 'VAULT_ADDR is set without a token'],
  [{ VAULT_ADDR: 'http://vault', VAULT_TOKEN: 'a' }, 'VAULT_ADDR is set without VAULT_SECRETS_PATH'],
  [{ VAULT_TOKEN: 'canary' }, 'VAULT_TOKEN is set without VAULT_ADDR: set VAULT_ADDR, or unset VAULT_TOKEN.'],
  [{ VAULT_ADDR: 'vault:8200' }, 'VAULT_ADDR is invalid: set it to a URL that starts with http:// or https://.'],
  [
    { VAULT_ADDR: 'http://v', VAULT_TOKEN: 'a', VAULT_SECRETS_PATH: 'secret/../a' },
    'VAULT_SECRETS_PATH is "secret/../a"',
  ],
])('the start stops with %o', (environment, message) => {
  expect(() => readConfig(environment)).toThrow(message)
})
