/** The findings of `doctor` about mistyped variables, proxies and services outside, with real faults. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { checkArtifacts } from '../../src/commands/doctor/artifacts.ts'
import { checkConfiguration, readConfiguration } from '../../src/commands/doctor/configuration.ts'
import { openEmbeddedStore } from '../../src/commands/doctor/doctor.ts'
import { checkStore } from '../../src/commands/doctor/embedded-store.ts'
import type { Finding } from '../../src/commands/doctor/finding.ts'
import {
  checkIdentityProvider,
  checkMail,
  checkProxy,
  checkSecrets,
  checkTraces,
} from '../../src/commands/doctor/outside.ts'
import { readConfig } from '../../src/config/config.ts'
import { startCollector } from '../support/collector.ts'
import { newDirectory, openStore, type Test } from '../support/domain.ts'
import { freePort } from '../support/free-port.ts'
import { startMailServer } from '../support/mail-server.ts'

const absent = `http://127.0.0.1:${await freePort()}`
const noStore = { inspection: undefined }
const vault = { VAULT_ADDR: absent, VAULT_TOKEN: 'token', VAULT_SECRETS_PATH: 'secret/runs' }
const oidc = (OIDC_ISSUER: string, OIDC_ACCOUNT = 'a') => ({
  ...{ OIDC_ISSUER, OIDC_ACCOUNT, OIDC_CLIENT_ID: 'a', OIDC_CLIENT_SECRET: 'secret', OIDC_ROLES: '{"*":"viewer"}' },
})
const bucket = {
  ARTIFACTS_URL: `s3://bucket?endpoint=${absent}`,
  ...{ ARTIFACTS_ACCESS_KEY_ID: 'a', ARTIFACTS_SECRET_ACCESS_KEY: 'secret' },
}
const smtp = (SMTP_URL: string) => ({ SMTP_URL, SMTP_FROM: 'runs@example.com' })
const variables = async (environment: NodeJS.ProcessEnv) =>
  checkConfiguration(readConfiguration(environment), environment)
const provider = (environment: NodeJS.ProcessEnv) => checkIdentityProvider(readConfig(environment), noStore)

/** Answers every request with a status and a body. Returns the address. */
async function serve(test: Test, status: number, body: object = {}): Promise<string> {
  const server = createServer((request, response) => {
    response.writeHead(status, { 'Content-Type': 'application/json' }).end(JSON.stringify(body))
    request.resume()
  })
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve))
  test.onTestFinished(() => void server.close())
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

describe('a broken installation is described in one sentence', () => {
  test.for<
    [what: string, find: (test: Test) => Promise<Finding> | Finding, status: string, detail: RegExp, advice: RegExp]
  >([
    [
      'a mistyped variable',
      () => variables({ DATABSE_URL: 'postgres://a:secret@b/c' }),
      ...(['warn', /^DATABSE_URL is set, which is no setting$/, /write DATABASE_URL: it has no effect\.$/] as const),
    ],
    [
      'https without a proxy that is counted',
      () => checkProxy(readConfig({ DASHBOARD_URL: 'https://runs.example.com' })),
      ...([
        'warn',
        /^DASHBOARD_URL is https, .* PROXY_HOPS is 0/,
        /^Set PROXY_HOPS to the number of proxies\.$/,
      ] as const),
    ],
    [
      'a missing SECRETS_DIR',
      () => checkSecrets(readConfig({ SECRETS_DIR: '/nowhere/{account}' })),
      ...([
        'fail',
        /^SECRETS_DIR \(.*\) cannot be read \(ENOENT/,
        /^Mount it, or set SECRETS_DIR to a directory/,
      ] as const),
    ],
    [
      'a SECRETS_DIR that is a file',
      () => checkSecrets(readConfig({ SECRETS_DIR: import.meta.filename })),
      ...(['fail', /is no directory$/, /^Mount it/] as const),
    ],
    [
      'an unreachable Vault',
      () => checkSecrets(readConfig(vault)),
      ...([
        'fail',
        /^Vault at .*\(Vault refused the connection \(ECONNREFUSED\)\)$/,
        /^Start Vault, or correct VAULT_ADDR/,
      ] as const),
    ],
    [
      'a Vault that refuses the token',
      async (test) => checkSecrets(readConfig({ ...vault, VAULT_ADDR: await serve(test, 403) })),
      ...(['fail', /refuses the token \(403\)/, /VAULT_SECRETS_PATH\.$/] as const),
    ],
    [
      'an unreachable identity provider',
      () => provider(oidc(`${absent}/main`)),
      ...(['fail', /^the metadata of OIDC_ISSUER .* cannot be read \(.*ECONNREFUSED/, /^Correct OIDC_ISSUER/] as const),
    ],
    [
      'an identity provider of another name',
      async (test) => provider(oidc(await serve(test, 200, { issuer: 'https://other.example.com' }))),
      ...(['fail', /says that its issuer is https:\/\/other\.example\.com\)$/, /^Correct OIDC_ISSUER/] as const),
    ],
    [
      'an unreachable SMTP server',
      () => checkMail(readConfig(smtp('smtp://user:secret@127.0.0.1:1'))),
      ...(['fail', /^the server of SMTP_URL takes no emails \(.*ECONNREFUSED/, /^Correct SMTP_URL/] as const),
    ],
    [
      'an unreachable collector',
      () => checkTraces(readConfig({ OTEL_EXPORTER_OTLP_ENDPOINT: absent }), {}),
      ...(['fail', /takes no traces \(.*ECONNREFUSED/, /^Start the collector, or correct/] as const),
    ],
    [
      'a collector that refuses',
      async (test) => checkTraces(readConfig({ OTEL_EXPORTER_OTLP_ENDPOINT: await serve(test, 401) }), {}),
      ...(['fail', /\(it responds with 401\)$/, /traces are lost\.$/] as const),
    ],
    [
      'an unreachable bucket',
      () => checkArtifacts(readConfig(bucket)),
      ...(['fail', /^the bucket of ARTIFACTS_URL cannot be used \(.*ECONNREFUSED/, /^Set ARTIFACTS_URL/] as const),
    ],
  ])('%s', async ([, find, status, detail, advice], test) => {
    const finding = await find(test)
    expect(finding).toEqual({
      status,
      detail: expect.stringMatching(detail),
      advice: expect.stringMatching(advice),
    })
    expect(JSON.stringify(finding)).not.toContain('secret@')
    expect(finding.advice).toMatch(/^[A-Z][^.]*(\.\S[^.]*)*\.$/)
  })
})

test('what is reachable passes', async (test) => {
  const mail = await startMailServer(test)
  expect(await checkMail(readConfig(smtp(mail.url)))).toMatchObject({ status: 'ok' })
  const collector = await startCollector(test)
  const traces = { OTEL_EXPORTER_OTLP_ENDPOINT: collector.url }
  expect(await checkTraces(readConfig(traces), {})).toMatchObject({ status: 'ok' })
  const directory = await newDirectory(test)
  expect(await checkSecrets(readConfig({ SECRETS_DIR: directory }))).toMatchObject({ status: 'ok' })
  expect(checkProxy(readConfig({ DASHBOARD_URL: 'https://a.example.com', PROXY_HOPS: '1' }))).toMatchObject({
    status: 'ok',
  })
  const others = { EXECUTOR_ENV: 'SECRET_DIR', SECRET_DIR: 'a', OTEL_EXPORTER_OTLP_HEADERS: 'a=b', SMTP_URLS: 'a' }
  expect(await variables({ ...others, ...smtp('smtp://localhost') })).toMatchObject({ status: 'ok' })
})

test('a provider whose account is missing is reported, since nobody could join it', async (test) => {
  const directory = await newDirectory(test)
  await openStore(test, directory)
  const opened = await openEmbeddedStore(directory)
  test.onTestFinished(() => void ('inspection' in opened && opened.inspection?.close()))
  const metadata = { issuer: '' }
  const issuer = await serve(test, 200, metadata)
  metadata.issuer = issuer
  expect(await checkIdentityProvider(readConfig(oidc(issuer)), opened)).toMatchObject({
    status: 'fail',
    detail: 'there is no account a, which people of the provider would join',
    advice: 'Set OIDC_ACCOUNT to an id that `accounts list` prints.',
  })
  expect(await provider(oidc(issuer))).toMatchObject({ status: 'ok' })
})

test('a store that this user may not open needs rights, and no backup', async (test) => {
  const directory = await newDirectory(test)
  mkdirSync(join(directory, 'service.db'))
  const advice = 'Let the user of the service read and write DATA_DIR and the files in it.'
  expect(await checkStore(await openEmbeddedStore(directory))).toMatchObject({ status: 'fail', advice })
  const damaged = await newDirectory(test)
  writeFileSync(join(damaged, 'service.db'), Buffer.alloc(8192, 1))
  expect(await checkStore(await openEmbeddedStore(damaged))).toMatchObject({
    status: 'fail',
    advice: 'Stop the service, and restore the data directory from a backup.',
  })
})
