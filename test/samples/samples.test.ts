/** The samples of the reference do what they say: each is run as it stands, against the service. */
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
import { type Caller, caseOf, type Scene, type Subject } from './cases.ts'
import { preparePython, startSample, stopPython } from './run-sample.ts'

let service: TestService

beforeAll(async () => {
  preparePython()
  service = await startTestService()
})

afterAll(async () => {
  await Promise.all([service?.stop(), stopPython()])
})

/** Calls as whoever holds the key does. */
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

function sampleOf(operationId: OperationId, lang: SampleLanguage): Sample {
  const sample = samplesFor(operationId).find((each) => each.lang === lang)
  if (!sample) throw new Error(`There is no sample of ${operationId} in ${lang}.`)
  return sample
}

/** The sample with the addresses of this service instead of the documents'. */
function addressed({ lang, source }: Sample): Sample {
  const here = source
    .replaceAll('http://127.0.0.1:3001', service.executionUrl)
    .replaceAll('http://127.0.0.1:3002', service.browserContextUrl)
  expect(here).not.toBe(source)
  return { lang, source: here }
}

/** The operations of the requests that the service has answered since its log had so many lines. */
function operationsSince(length: number): unknown[] {
  return service.log.slice(length).flatMap(({ msg, operationId }) => (msg === 'request' ? [operationId] : []))
}

const shared = new Map<OperationId, Promise<Subject>>()

function subjectOf(operationId: OperationId, directory: string): Promise<Subject> {
  const { prepare, onlyReads } = caseOf(operationId)
  const make = async () => {
    const { key } = await service.createAccount()
    const subject: Subject = { key, caller: callerWith(key), directory, environment: {} }
    await prepare?.(subject)
    return subject
  }
  const subject = shared.get(operationId) ?? make()
  if (onlyReads) shared.set(operationId, subject)
  return subject
}

async function runSample(operationId: OperationId, lang: SampleLanguage, directory: string): Promise<void> {
  const { during, check, requests = () => 1 } = caseOf(operationId)
  const scene: Scene = { ...(await subjectOf(operationId, directory)), directory, lang }
  const before = service.log.length
  const environment = { ...scene.environment, API_KEY: scene.key }
  const running = startSample(addressed(sampleOf(operationId, lang)), { directory, environment })
  await during?.(scene, running)
  expect(await running.ended, running.output).toBe(0)
  const expected = Array(requests(lang)).fill(operationId)
  await until('the service has logged the request', () => operationsSince(before).length >= expected.length)
  expect(operationsSince(before)).toEqual(expected)
  await check(scene, running.output)
}

const languages = Object.keys(sampleLanguages) as SampleLanguage[]

describe.each(languages)('%s', (lang) => {
  let directory: string

  beforeEach(() => {
    directory = temporaryDirectory()
  })

  afterEach(() => removeDirectory(directory))

  test.each(operations.map(({ id }) => id))('the sample of %s does what it says', (id) =>
    runSample(id, lang, directory),
  )

  test('a sample with a key that is refused fails, and says so', async () => {
    const environment = { API_KEY: randomUUID(), RUN_ID: randomUUID() }
    for (const id of ['queueRemoteRun', 'getRun'] as const) {
      const running = startSample(addressed(sampleOf(id, lang)), { directory, environment })
      expect(await running.ended, running.output).not.toBe(0)
      expect(running.output).toMatch(/401|Unauthorized/)
    }
  })
})

test('every operation has a sample in each language, and there are no others', () => {
  const expected = operations.flatMap(({ id }) =>
    Object.values(sampleLanguages).map((extension) => `${id}.${extension}`),
  )
  expect(readdirSync(fileURLToPath(samplesDirectory)).sort()).toEqual(expected.sort())
})
