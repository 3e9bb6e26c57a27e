/** The mock: both documents served without a service, with the stages of `src/contract/` in front of Prism. No state. */
import express, { type Express } from 'express'
import type { Logger } from 'pino'
import type { HandlerRequest } from '../contract/handler-request.ts'
import { type Listener, listen } from '../contract/listener.ts'
import { mountDocument } from '../contract/mount.ts'
import { type Document, readOperations } from '../contract/operations.ts'
import { browserContextDocument, executionDocument } from '../documents.ts'
import { mockAnswer } from './answers.ts'
import { cors } from './cors.ts'
import { type MockKey, mockKeys } from './keys.ts'
import { startPrism } from './prism.ts'

export interface MockOptions {
  host: string
  /** 0 for any free port. */
  executionPort: number
  browserContextPort: number
  log: Logger
  /** Other documents than those of this version. */
  documents?: { execution: Document; browserContext: Document }
}

export interface Mock {
  executionUrl: string
  browserContextUrl: string
  stop(): Promise<void>
}

const documentsOfThisVersion = { execution: executionDocument, browserContext: browserContextDocument }

/** Resolves when both documents are served; rejects with ListenRefused when a port cannot be had. */
export async function startMock(options: MockOptions): Promise<Mock> {
  const { host, executionPort, browserContextPort, log, documents = documentsOfThisVersion } = options
  const apps = await Promise.all([
    mockApp('the Execution API', documents.execution, log),
    mockApp('the Browser Context API', documents.browserContext, log),
  ])
  const opened: Listener[] = []
  try {
    opened.push(await listen(apps[0], { host, port: executionPort, name: 'MOCK_EXECUTION_PORT' }))
    opened.push(await listen(apps[1], { host, port: browserContextPort, name: 'MOCK_BROWSER_CONTEXT_PORT' }))
  } catch (error) {
    await Promise.all(opened.map((listener) => listener.stop(0)))
    throw error
  }
  const [executionUrl = '', browserContextUrl = ''] = opened.map(({ url }) => url)
  const stop = async () => void (await Promise.all(opened.map((listener) => listener.stop(1))))
  return { executionUrl, browserContextUrl, stop }
}

async function mockApp(name: string, document: Document, log: Logger): Promise<Express> {
  const prism = await startPrism(document)
  const operations = readOperations(document)
  const handlers = operations.map((operation) => {
    const handler = (request: HandlerRequest & { principal: unknown }) => mockAnswer(prism, operation, request)
    return [operation.id, handler] as const
  })
  const surface = { name, document, handlers: Object.fromEntries(handlers), authenticate, isUnavailable, log }
  const mounted = await mountDocument<MockKey, typeof surface.handlers>(surface)
  return express().disable('x-powered-by').use(cors(operations, prism.headers)).use(mounted)
}

/** Stands for a store that does not answer. */
class Unavailable extends Error {}

const isUnavailable = (error: unknown) => error instanceof Unavailable

async function authenticate(value: string) {
  const key = mockKeys.find((each) => each.value === value)
  if (!key || key.status === 401) return undefined
  if (key.status === 500) throw new Error('The key asks for this fault.')
  if (key.status === 503) throw new Unavailable('The key asks for this fault.')
  return { principal: key, scopes: key.status === 403 ? [] : null }
}
