/** The mock: both documents served without a service, with the stages of `src/contract/` in front of Prism. No state. */
import express, { type Express, type RequestHandler } from 'express'
import type { Logger } from 'pino'
import type { HandlerRequest } from '../../contract/exchange.ts'
import { documentHashLocal, type Listener, listen } from '../../contract/listener.ts'
import { mountDocument } from '../../contract/mount.ts'
import { apiKeyRealm } from '../../domain/api-keys/api-key.ts'
import { domainProblemTypes } from '../../domain/problems.ts'
import type { Document } from '../../openapi/document.ts'
import { browserContextContract, executionContract } from '../../openapi/served-documents.ts'
import { readOperations } from '../../openapi/served-operations.ts'
import { docsHandler, isDocsPath } from '../../surfaces/docs/docs-handler.ts'
import { mockAnswer } from './answers.ts'
import { cors } from './cors.ts'
import { type MockKey, mockKeys } from './keys.ts'
import { startPrism } from './prism.ts'

/** A document, and the hash by which answers name it. */
interface Contract {
  document: Document
  documentHash: string
}

export interface MockOptions {
  host: string
  /** 0 for any free port. */
  executionPort: number
  browserContextPort: number
  log: Logger
  /** Others than those of this version. */
  contracts?: { execution: Contract; browserContext: Contract }
}

export interface Mock {
  executionUrl: string
  browserContextUrl: string
  stop(): Promise<void>
}

const ofThisVersion = { execution: executionContract, browserContext: browserContextContract }

/** Resolves when both documents are served; rejects with ListenRefused when a port cannot be had. */
export async function startMock(options: MockOptions): Promise<Mock> {
  const { host, executionPort, browserContextPort, log, contracts = ofThisVersion } = options
  const opened: Listener[] = []
  // Where the `type` of a problem leads.
  const docs = docsHandler(() => ({ execution: opened[0]?.url, 'browser-context': opened[1]?.url }))
  const apps = await Promise.all([
    mockApp({ name: 'the Execution API', contract: contracts.execution, docs, log }),
    mockApp({ name: 'the Browser Context API', contract: contracts.browserContext, docs, log }),
  ])
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

interface MockedApi {
  name: string
  contract: Contract
  docs: RequestHandler
  log: Logger
}

async function mockApp({ name, contract, docs, log }: MockedApi): Promise<Express> {
  const { document } = contract
  const fallback = (path: string) => (isDocsPath(path) ? docs : undefined)
  const prism = await startPrism(document)
  const operations = readOperations(document)
  const handlers = operations.map((operation) => {
    const handler = (request: HandlerRequest & { principal: unknown }) => mockAnswer(prism, operation, request)
    return [operation.id, handler] as const
  })
  const stages = {
    realm: apiKeyRealm,
    problemTypes: domainProblemTypes,
    fallback,
    authenticate,
    limitRate,
    isUnavailable,
    log,
  }
  const surface = { name, ...contract, ...stages, handlers: Object.fromEntries(handlers) }
  const mounted = await mountDocument<MockKey, typeof surface.handlers>(surface)
  const app = express().disable('x-powered-by').use(cors(operations, prism.headers)).use(mounted)
  app.locals[documentHashLocal] = contract.documentHash
  return app
}

/** Stands for a store that does not answer. */
class Unavailable extends Error {}

const isUnavailable = (error: unknown) => error instanceof Unavailable

async function authenticate(value: string) {
  const key = mockKeys.find((each) => each.value === value.toLowerCase())
  if (!key || key.status === 401) return undefined
  if (key.status === 500) throw new Error('The key asks for this fault.')
  if (key.status === 503) throw new Unavailable('The key asks for this fault.')
  return { principal: key, scopes: key.status === 403 ? [] : null }
}

/** Not for long: a client that waits as it is told shall not seem to hang. */
async function limitRate({ status }: MockKey) {
  return status === 429 ? { policy: 'api-key', requestsMax: 6000, windowSeconds: 60, retryAfterSeconds: 2 } : undefined
}
