/** Databases as libpq and cloud providers name them, and with what roles and databases may have set. */
import { spawnSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { chmodSync, chownSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { checkDatabase } from '../../src/commands/doctor/database.ts'
import { openDatabase } from '../../src/commands/doctor/doctor.ts'
import { readConfig } from '../../src/config/config.ts'
import { openStore } from '../../src/domain/installation.ts'
import { callerOf, ownInstallation, queue } from '../e2e/caller.ts'
import { serverUser } from '../support/postgres-binaries.ts'
import { type PostgresServer, startPostgres } from '../support/postgres-server.ts'
import { removeDirectory, temporaryDirectory } from '../support/service.ts'

const directory = temporaryDirectory()
const certificate = join(directory, 'server.crt')
const socketDirectory = join(directory, 'cloudsql')
/** With a certificate for 127.0.0.1 that no system knows, and without TLS. */
let secure: PostgresServer
let plain: PostgresServer

beforeAll(async () => {
  const key = join(directory, 'server.key')
  const request = ['req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-days', '2', '-subj', '/CN=test']
  const names = ['-addext', 'subjectAltName=IP:127.0.0.1', '-keyout', key, '-out', certificate]
  expect(spawnSync('openssl', [...request, ...names]).status).toBe(0)
  mkdirSync(socketDirectory)
  chmodSync(directory, 0o755)
  const { uid, gid } = serverUser()
  if (uid && gid) for (const path of [key, certificate, socketDirectory]) chownSync(path, uid, gid)
  const tls = { ssl: 'on', ssl_cert_file: certificate, ssl_key_file: key }
  ;[secure, plain] = await Promise.all([
    startPostgres({ settings: tls }),
    startPostgres({ settings: { unix_socket_directories: socketDirectory } }),
  ])
})
afterAll(async () => {
  await Promise.all([secure?.remove(), plain?.remove()])
  removeDirectory(directory)
})

async function run(server: PostgresServer, sql: string): Promise<void> {
  const client = new pg.Client(server.url())
  await client.connect()
  await client.query(sql).finally(() => client.end())
}

/** Opens the store of a configuration, and tells whether its connections are encrypted. */
async function connect(url: string): Promise<boolean> {
  const store = await openStore(readConfig({ DATABASE_URL: url }))
  const sql = 'SELECT count(*)::int AS encrypted FROM pg_stat_ssl WHERE ssl AND pid = pg_backend_pid()'
  const [row] = await store.read.all<{ encrypted: number }>(sql, []).finally(() => store.close())
  return row?.encrypted === 1
}

describe('sslmode means what it means to libpq', () => {
  test.for<[mode: string, secure: boolean | RegExp, plain: boolean | RegExp]>([
    ['disable', false, false],
    ['prefer', true, false],
    ['allow', true, false],
    ['require', true, /do not match \(The server does not support SSL connections\): set up TLS/],
    [
      'verify-full',
      /do not match \(self-signed certificate.+\): set up TLS on the server, or correct sslmode/,
      /does not support SSL/,
    ],
    [`verify-full&sslrootcert=CERTIFICATE`, true, /does not support SSL/],
    [`verify-ca&sslrootcert=CERTIFICATE`, true, /does not support SSL/],
    ['require&channel_binding=require', true, /does not support SSL/],
    ['verify-ca&sslrootcert=/nowhere', /^The file of sslrootcert in DATABASE_URL cannot be read: ENOENT/, /ENOENT/],
  ])('%s', async ([mode, ...expected]) => {
    for (const [index, server] of [secure, plain].entries()) {
      const connecting = connect(`${server.url()}?sslmode=${mode.replace('CERTIFICATE', certificate)}`)
      const result = expected[index]
      if (result instanceof RegExp) await expect(connecting).rejects.toThrow(result)
      else expect(await connecting).toBe(result)
    }
  })
})

test('a Unix socket is the host among the parameters, also with a user and password', async () => {
  for (const address of ['postgres:p%23@', 'postgres:p@localhost']) {
    const url = `postgres://${address}/postgres?host=${socketDirectory}&port=${plain.port}&sslmode=prefer`
    expect(await connect(url)).toBe(false)
  }
})

test('a database of another encoding is refused by the start and by doctor', async () => {
  await run(plain, "CREATE DATABASE latin ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0")
  const url = plain.url('latin')
  const sentence =
    "has the encoding LATIN1, which cannot store every text: create it again by `CREATE DATABASE … ENCODING 'UTF8' TEMPLATE template0`."
  await expect(openStore(readConfig({ DATABASE_URL: url }))).rejects.toThrow(sentence)
  const opened = await openDatabase(url)
  if ('inspection' in opened) await opened.inspection?.close()
  expect(checkDatabase(opened)).toMatchObject({
    status: 'fail',
    detail: expect.stringMatching(/^PostgreSQL 1\d at \S+ has the encoding LATIN1, which cannot store every text$/),
    advice: "Create it again by `CREATE DATABASE … ENCODING 'UTF8' TEMPLATE template0`.",
  })
})

test('runs end as otherwise if the role has another isolation, or only reads', async (context) => {
  const role = `role_${randomBytes(4).toString('hex')}`
  await run(plain, `CREATE ROLE ${role} LOGIN PASSWORD 'test'`)
  await run(plain, `CREATE DATABASE ${role} OWNER ${role}`)
  for (const setting of ["default_transaction_isolation = 'serializable'", 'default_transaction_read_only = on'])
    await run(plain, `ALTER ROLE ${role} SET ${setting}`)
  const url = `postgres://${role}:test@127.0.0.1:${plain.port}/${role}`
  const installation = await ownInstallation(context, { DATABASE_URL: url })
  const { client } = await callerOf(installation, await installation.start())
  const outcomes: string[] = []
  const call = async () => {
    for (let count = 0; count < 25; count += 1) {
      const { run } = await queue(client, 'greet', { name: 'Ada', token: 'a secret' }, {}, { Prefer: 'wait=20' })
      outcomes.push(run.status)
    }
  }
  await Promise.all(Array.from({ length: 8 }, call))
  expect(outcomes).toEqual(Array(200).fill('succeeded'))
  expect(plain.log()).not.toMatch(/could not serialize|read-only transaction/)
})
