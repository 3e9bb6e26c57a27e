/** What each sample is run on, and what must have come of it, whatever its language. */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'vitest'
import type { SampleLanguage } from '../../src/surfaces/docs/contracts.ts'
import type { OperationId } from '../operations/document.ts'
import { until } from '../support/service.ts'
import type { RunningSample } from './run-sample.ts'

/** Calls the service with the key of the sample's own account. */
export interface Caller {
  execution(method: string, path: string, body?: unknown): Promise<Answer>
  browserContext(method: string, path: string, body?: unknown): Promise<Answer>
}

export interface Answer {
  status: number
  // biome-ignore lint/suspicious/noExplicitAny: what it is stands in the document
  body: any
}

/** An account, and what of it the sample is about. */
export interface Subject {
  key: string
  caller: Caller
  /** The folder that the sample runs in. */
  directory: string
  /** What the sample finds in its environment beside the key; `prepare` fills it. */
  environment: Record<string, string>
}

export interface Scene extends Subject {
  lang: SampleLanguage
}

export interface Case {
  prepare?(subject: Subject): Promise<void>
  /** The samples of all languages then share what was prepared, which takes most of the time. */
  onlyReads?: true
  /** Done while the sample runs. */
  during?(scene: Scene, sample: RunningSample): Promise<void>
  check(scene: Scene, output: string): Promise<void> | void
  /** How many requests the sample makes; 1 unless it is said. */
  requests?(lang: SampleLanguage): number
}

export const storageState = readFileSync('test/operations/storage-state.json', 'utf8')

/** More than a page holds. */
const many = 101
/** The curl samples show one page and say how to get the next. */
const pages = (lang: SampleLanguage) => (lang === 'curl' ? 1 : 2)
const itemsOf = ({ lang }: Scene, ids: string[]) => (lang === 'curl' ? ids.slice(0, 100) : ids)

async function queue({ caller, environment }: Subject, workflowId: string, variableData: unknown, query = '') {
  const path = `/v1/execution/queue-remote/${workflowId}${query}`
  const { status, body } = await caller.execution('PUT', path, { variableData })
  expect(status).toBe(202)
  environment.RUN_ID = body.id
}

async function finishRun({ caller, environment }: Subject): Promise<void> {
  await until('the run has succeeded', async () => {
    const { body } = await caller.execution('GET', `/v1/execution/runs/${environment.RUN_ID}`)
    return body.status === 'succeeded'
  })
}

async function createContext({ caller, environment }: Subject, name = 'Shop'): Promise<void> {
  const { status, body } = await caller.browserContext('POST', '/alpha/browser-contexts', { name })
  expect(status).toBe(201)
  environment.BROWSER_CONTEXT_ID = body.id
}

const contextPath = ({ environment }: Subject) => `/alpha/browser-contexts/${environment.BROWSER_CONTEXT_ID}`
const statePath = (subject: Subject) => `${contextPath(subject)}/storage-state`

async function createContextWithState(subject: Subject): Promise<void> {
  await createContext(subject)
  expect((await subject.caller.browserContext('PUT', statePath(subject), JSON.parse(storageState))).status).toBe(204)
}

async function idsOf(call: Caller['execution'], path: string): Promise<string[]> {
  const ids: string[] = []
  for (let cursor: string | null = ''; cursor !== null; ) {
    const { body } = await call('GET', `${path}?limit=100${cursor && `&cursor=${cursor}`}`)
    ids.push(...body.data.map(({ id }: { id: string }) => id))
    cursor = body.nextCursor
  }
  return ids
}

function expectAll(output: string, shown: (string | undefined)[]): void {
  for (const each of shown) expect(output).toContain(each)
}

const inOrder = (count: number) => Array.from({ length: count }, (_, index) => index)

const cases: Record<OperationId, Case> = {
  queueRemoteRun: {
    async check({ caller }, output) {
      const { body } = await caller.execution('GET', '/v1/execution/runs')
      expect(body.data).toEqual([expect.objectContaining({ workflowId: 'count-words' })])
      expect(body.data[0].variableData).toEqual({ path: 'README.md', top: 5 })
      expectAll(output, [body.data[0].id, 'queued'])
    },
  },
  listRuns: {
    onlyReads: true,
    async prepare(subject) {
      await Promise.all(inOrder(many).map(() => queue(subject, 'greet', { name: 'Ada' }, '?delaySeconds=1000')))
    },
    requests: pages,
    async check(scene, output) {
      const ids = await idsOf(scene.caller.execution, '/v1/execution/runs')
      expect(ids).toHaveLength(many)
      expectAll(output, itemsOf(scene, ids))
    },
  },
  getRun: {
    onlyReads: true,
    async prepare(subject) {
      await queue(subject, 'greet', { name: 'Ada' })
      await finishRun(subject)
    },
    check: ({ environment }, output) => expectAll(output, [environment.RUN_ID, 'succeeded', 'Hello, Ada!']),
  },
  cancelRun: {
    prepare: (subject) => queue(subject, 'greet', { name: 'Ada' }, '?delaySeconds=1000'),
    check: ({ environment }, output) => expectAll(output, [environment.RUN_ID, 'cancelled']),
  },
  streamRunEvents: {
    prepare: (subject) => queue(subject, 'hold', { file: join(subject.directory, 'go') }),
    async during({ directory }, sample) {
      const shown = () => sample.output.includes('Holding') || sample.exitCode !== undefined
      await until('the sample shows an event of the run that goes on', shown)
      expect(sample.exitCode, sample.output).toBeUndefined()
      writeFileSync(join(directory, 'go'), '')
    },
    check: (_, output) => expect(output).toMatch(/queued.*running.*Holding.*Released.*succeeded/s),
  },
  getRunArtifact: {
    onlyReads: true,
    async prepare(subject) {
      await queue(subject, 'print', {})
      await finishRun(subject)
      subject.environment.ARTIFACT_NAME = 'hello.txt'
    },
    check: ({ directory }) => expect(readFileSync(join(directory, 'hello.txt'), 'utf8')).toBe('Hello'),
  },
  listWorkflows: {
    check: (_, output) => expectAll(output, ['count-words', 'greet', 'Hold until a file exists']),
  },
  getWorkflow: {
    check: (_, output) => expectAll(output, ['How many words to list.', 'maximum']),
  },
  listBrowserContexts: {
    onlyReads: true,
    async prepare(subject) {
      await Promise.all(inOrder(many).map((index) => createContext(subject, `Shop ${index}`)))
    },
    requests: pages,
    async check(scene, output) {
      const ids = await idsOf(scene.caller.browserContext, '/alpha/browser-contexts')
      expect(ids).toHaveLength(many)
      expectAll(output, itemsOf(scene, ids))
    },
  },
  createBrowserContext: {
    async check({ caller }, output) {
      const { body } = await caller.browserContext('GET', '/alpha/browser-contexts')
      expect(body.data).toEqual([expect.objectContaining({ name: 'Shop, signed in' })])
      expectAll(output, [body.data[0].id])
    },
  },
  getBrowserContext: {
    onlyReads: true,
    prepare: createContextWithState,
    check: ({ environment }, output) => expectAll(output, [environment.BROWSER_CONTEXT_ID, 'ready', '127.0.0.1']),
  },
  updateBrowserContext: {
    prepare: createContext,
    async check(scene, output) {
      const { body } = await scene.caller.browserContext('GET', contextPath(scene))
      expect(body.name).not.toBe('Shop')
      expectAll(output, [scene.environment.BROWSER_CONTEXT_ID, body.name])
    },
  },
  deleteBrowserContext: {
    prepare: createContext,
    async check(scene) {
      expect((await scene.caller.browserContext('GET', contextPath(scene))).status).toBe(404)
    },
  },
  getStorageState: {
    onlyReads: true,
    prepare: createContextWithState,
    check({ directory }) {
      const written = JSON.parse(readFileSync(join(directory, 'state.json'), 'utf8'))
      expect(written).toEqual(JSON.parse(storageState))
    },
  },
  putStorageState: {
    async prepare(subject) {
      await createContext(subject)
      writeFileSync(join(subject.directory, 'state.json'), storageState)
    },
    async check(scene) {
      expect((await scene.caller.browserContext('GET', statePath(scene))).body).toEqual(JSON.parse(storageState))
    },
  },
}

export function caseOf(operationId: OperationId): Case {
  const found = cases[operationId]
  if (!found) throw new Error(`test/samples/cases.ts does not say what the samples of ${operationId} must do.`)
  return found
}
