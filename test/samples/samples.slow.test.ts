/** Every code sample of the reference is run unchanged against the service. */
import { randomUUID } from 'node:crypto'
import { readdirSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import {
  type Sample,
  type SampleLanguage,
  sampleLanguages,
  samplesDirectory,
  samplesFor,
} from '../../src/surfaces/docs/contracts.ts'
import { type OperationId, operations } from '../operations/document.ts'
import { removeDirectory, startTestService, type TestService, temporaryDirectory, until } from '../support/service.ts'
import { caseFor, type Execution } from './cases.ts'
import { preparePython, startSample, stopPython } from './run-sample.ts'
import type { Caller, Setup } from './setups.ts'

let service: TestService

beforeAll(async () => {
  preparePython()
  service = await startTestService()
})

afterAll(async () => {
  await Promise.all([service?.stop(), stopPython()])
})

function callerWith(key: string): Caller {
  const call =
    (url: string, credential: Record<string, string>) => async (method: string, path: string, body?: unknown) => {
      const headers = { ...credential, 'Content-Type': 'application/json' }
      const response = await fetch(url + path, {
        method,
        headers,
        body: body === undefined ? null : JSON.stringify(body),
      })
      const text = await response.text()
      return { status: response.status, body: text.startsWith('{') ? JSON.parse(text) : text }
    }
  return {
    execution: call(service.executionUrl, { Authorization: `Bearer ${key}` }),
    browserContext: call(service.browserContextUrl, { 'x-service-api-key': key }),
  }
}

function findSample(operationId: OperationId, lang: SampleLanguage): Sample {
  const sample = samplesFor(operationId).find((each) => each.lang === lang)
  if (!sample) throw new Error(`${operationId} has no sample in ${lang}.`)
  return sample
}

/** The sample with the addresses of this service. */
function withServiceAddresses({ lang, source }: Sample): Sample {
  const text = source
    .replaceAll('http://127.0.0.1:3001', service.executionUrl)
    .replaceAll('http://127.0.0.1:3002', service.browserContextUrl)
  expect(text).not.toBe(source)
  return { lang, source: text }
}

/** The operations of the requests logged after the first `length` lines. */
function operationsLoggedAfter(length: number): unknown[] {
  return service.log.slice(length).flatMap(({ msg, operationId }) => (msg === 'request' ? [operationId] : []))
}

const shared = new Map<OperationId, Promise<Setup>>()

function setUp(operationId: OperationId, directory: string): Promise<Setup> {
  const { prepare, onlyReads } = caseFor(operationId)
  const make = async () => {
    const { key } = await service.createAccount()
    const setup: Setup = {
      key,
      executionUrl: service.executionUrl,
      caller: callerWith(key),
      directory,
      environment: {},
    }
    await prepare?.(setup)
    return setup
  }
  const setup = shared.get(operationId) ?? make()
  if (onlyReads) shared.set(operationId, setup)
  return setup
}

async function runSample(operationId: OperationId, lang: SampleLanguage, directory: string): Promise<void> {
  const { during, check, requests = () => 1 } = caseFor(operationId)
  const execution: Execution = { ...(await setUp(operationId, directory)), directory, lang }
  const before = service.log.length
  const environment = { ...execution.environment, API_KEY: execution.key }
  const running = startSample(withServiceAddresses(findSample(operationId, lang)), { directory, environment })
  await during?.(execution, running)
  expect(await running.exited, running.output).toBe(0)
  const expected = Array(requests(lang)).fill(operationId)
  await until('the service has logged the requests', () => operationsLoggedAfter(before).length >= expected.length)
  expect(operationsLoggedAfter(before)).toEqual(expected)
  await check(execution, running.output)
}

const languages = Object.keys(sampleLanguages) as SampleLanguage[]

describe.each(languages)('%s', (lang) => {
  let directory: string

  beforeEach(() => {
    directory = temporaryDirectory()
  })

  afterEach(() => removeDirectory(directory))

  test.each(operations.map(({ id }) => id))('the sample of %s works as printed', (id) => runSample(id, lang, directory))

  test('a sample with an unknown key fails and prints the status', async () => {
    const environment = { API_KEY: randomUUID(), RUN_ID: randomUUID() }
    for (const id of ['queueRemoteRun', 'getRun'] as const) {
      const running = startSample(withServiceAddresses(findSample(id, lang)), { directory, environment })
      expect(await running.exited, running.output).not.toBe(0)
      expect(running.output).toMatch(/401|Unauthorized/)
    }
  })
})

test('every operation has one sample in each language', () => {
  const expected = operations.flatMap(({ id }) =>
    Object.values(sampleLanguages).map((extension) => `${id}.${extension}`),
  )
  expect(readdirSync(fileURLToPath(samplesDirectory)).sort()).toEqual(expected.sort())
})
