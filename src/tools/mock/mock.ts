/** Serves both documents and the workflows of a directory without a service: the stages of `src/contract/` in front of Prism. */
import express, { type Express, type RequestHandler } from 'express'
import type { Logger } from 'pino'
import { shellCommand } from '../../config/command-line.ts'
import { closeComponents } from '../../contract/closed-schemas.ts'
import type { HandlerRequest, HandlerResponse } from '../../contract/exchange.ts'
import { documentHashLocal, type Listener, listen } from '../../contract/listener.ts'
import { mountDocument } from '../../contract/mount.ts'
import { createPathLookup } from '../../contract/path-lookup.ts'
import { apiKeyRealm } from '../../domain/api-keys/api-key.ts'
import { RunTokens } from '../../domain/api-keys/run-tokens.ts'
import { domainProblemTypes } from '../../domain/problems.ts'
import type { Workflows } from '../../domain/workflows/workflows.ts'
import type { Document } from '../../openapi/document.ts'
import { browserContextContract, executionContract } from '../../openapi/served-documents.ts'
import { type Operation, readOperations } from '../../openapi/served-operations.ts'
import { BuiltDocs, docsHandler, isDocsPath } from '../../surfaces/docs/docs-handler.ts'
import { executionHandlers, withWorkflows } from './mock-execution-api.ts'
import { type MockKey, mockKeys, validKey } from './mock-keys.ts'
import { type Clock, mockResponse, systemClock } from './mock-response.ts'
import { refuseList } from './mock-workflows.ts'
import { type Prism, startPrism } from './prism.ts'

interface Contract {
  document: Document
  /** Sent as `X-Document-Hash`. */
  documentHash: string
}

export interface MockOptions {
  host: string
  /** 0 for any free port. */
  executionPort: number
  browserContextPort: number
  log: Logger
  workflows: Workflows
  /** Default: the time of the system. */
  clock?: Clock
  /** Default: those of this version. */
  contracts?: { execution: Contract; browserContext: Contract }
}

export interface Mock {
  executionUrl: string
  browserContextUrl: string
  stop(): Promise<void>
}

const currentContracts = { execution: executionContract, browserContext: browserContextContract }

/** @throws {ListenError} if a port is not available. */
export async function startMock(options: MockOptions): Promise<Mock> {
  const { host, executionPort, browserContextPort, log, contracts = currentContracts, clock = systemClock } = options
  const { workflows } = options
  const listeners: Listener[] = []
  // The `type` of a problem is a link into the docs.
  const docs = docsHandler(
    new BuiltDocs(() => ({ execution: listeners[0]?.url, 'browser-context': listeners[1]?.url })),
  )
  const apps = await Promise.all([
    createApp({
      ...{ name: 'the Execution API', contract: contracts.execution, docs, mcp: refuseMcp, log },
      prismDocument: withWorkflows(contracts.execution.document, workflows),
      createHandlers: (prism, operations) =>
        executionHandlers({ prism, operations, workflows, clock, executionUrl: () => listeners[0]?.url ?? '' }),
    }),
    createApp({
      ...{ name: 'the Browser Context API', contract: contracts.browserContext, docs, log },
      prismDocument: contracts.browserContext.document,
      createHandlers: async (prism, operations) => prismHandlers(prism, operations, clock),
    }),
  ])
  try {
    listeners.push(await listen(apps[0], { host, port: executionPort, name: 'MOCK_EXECUTION_PORT' }))
    listeners.push(await listen(apps[1], { host, port: browserContextPort, name: 'MOCK_BROWSER_CONTEXT_PORT' }))
  } catch (error) {
    await Promise.all(listeners.map((listener) => listener.stop(0)))
    throw error
  }
  const [executionUrl = '', browserContextUrl = ''] = listeners.map(({ url }) => url)
  const stop = async () => void (await Promise.all(listeners.map((listener) => listener.stop(1))))
  return { executionUrl, browserContextUrl, stop }
}

interface MockedApi {
  name: string
  contract: Contract
  docs: RequestHandler
  mcp?: RequestHandler
  log: Logger
  /** The document from which Prism responds. */
  prismDocument: Document
  createHandlers(prism: Prism, operations: Operation[]): Promise<Record<string, Handler>>
}

type Handler = (request: HandlerRequest) => Promise<HandlerResponse>

function prismHandlers(prism: Prism, operations: Operation[], clock: Clock): Record<string, Handler> {
  const handlers = operations.map((operation) => {
    return [operation.id, (request: HandlerRequest) => mockResponse(prism, operation, request, clock)] as const
  })
  return Object.fromEntries(handlers)
}

async function createApp(api: MockedApi): Promise<Express> {
  const { name, contract, docs, mcp, log, prismDocument } = api
  const { document } = contract
  const fallback = (path: string) => (isDocsPath(path) ? docs : path === '/mcp' ? mcp : undefined)
  // Prism makes up members for open schemas.
  const prism = await startPrism({ ...prismDocument, components: closeComponents(prismDocument.components) })
  const operations = readOperations(document)
  const handlers = refuseBefore(await api.createHandlers(prism, operations))
  const surface = {
    ...{ name, ...contract, handlers },
    ...{ realm: apiKeyRealm, problemTypes: domainProblemTypes },
    ...{ fallback, authenticate, limitRate, isUnavailable, log, refusesMismatches: true },
  }
  const mounted = await mountDocument<MockKey, typeof surface.handlers>(surface)
  const app = express().disable('x-powered-by').use(cors(operations, prism.headers)).use(mounted)
  app.locals[documentHashLocal] = contract.documentHash
  return app
}

/** Checks what the document cannot express. `listWorkflows` checks its cursors itself. */
function refuseBefore(handlers: Record<string, Handler>): Record<string, Handler> {
  const checked = Object.entries(handlers).map(([id, handler]): [string, Handler] => {
    if (id === 'listWorkflows') return [id, handler]
    return [id, async (request) => refuseList(id, request) ?? handler(request)]
  })
  return Object.fromEntries(checked)
}

class DatabaseUnavailableError extends Error {}

const isUnavailable = (error: unknown) => error instanceof DatabaseUnavailableError

async function authenticate(value: string) {
  // Any token of a run is valid.
  const key = RunTokens.looksLike(value) ? validKey : mockKeys.find((each) => each.value === value.toLowerCase())
  if (!key || key.status === 401) return undefined
  if (key.status === 500) throw new Error('Requested by the API key.')
  if (key.status === 503) throw new DatabaseUnavailableError('Requested by the API key.')
  return { principal: key, scopes: key.status === 403 ? [] : null }
}

/** A short wait, so that a client that honours `Retry-After` does not seem to hang. */
async function limitRate({ status }: MockKey) {
  const isExceeded = status === 429
  const left = isExceeded ? { remaining: 0, resetSeconds: 2 } : { remaining: 5999, resetSeconds: 60 }
  return { policy: 'api-key', requestsMax: 6000, windowSeconds: 60, ...left, isExceeded }
}

const preflightMaxAgeSeconds = 600

/** Lets pages of any origin call the mock, with credentials (Fetch Standard, section 3.2). */
function cors(operations: Operation[], exposedHeaders: string[]): RequestHandler {
  const find = createPathLookup(operations)
  return function cors({ method, path, headers }, response, next) {
    const { origin } = headers
    response.setHeader('Vary', 'Origin')
    if (origin === undefined) return next()
    response.setHeader('Access-Control-Allow-Origin', origin)
    response.setHeader('Access-Control-Allow-Credentials', 'true')
    response.setHeader('Access-Control-Expose-Headers', exposedHeaders.join(', '))
    const match = find(path)
    if (method !== 'OPTIONS' || headers['access-control-request-method'] === undefined || !match) return next()
    response.setHeader('Access-Control-Allow-Methods', [...match.operations.keys()].join(', '))
    // With credentials, `*` would be taken literally.
    response.setHeader('Access-Control-Allow-Headers', headers['access-control-request-headers'] ?? '')
    response.setHeader('Access-Control-Max-Age', String(preflightMaxAgeSeconds))
    response.writeHead(204).end()
  }
}

const parseJson = express.json({ limit: '1mb', type: () => true })

/** JSON-RPC 2.0, section 5.1. */
const methodNotFound = -32_601

/** `/mcp`: an error that MCP clients show, since every tool of the service needs what was queued before. */
const refuseMcp: RequestHandler = (request, response) => {
  // Streamable HTTP: a server without a stream of its messages responds 405 to GET.
  if (request.method !== 'POST') return void response.setHeader('Allow', 'POST').status(405).end()
  parseJson(request, response, () => {
    const { id } = Object(request.body) as { id?: unknown }
    // A notification gets no response.
    if (request.body && id === undefined) return void response.status(202).end()
    const message = `The mock has no MCP server, because it remembers nothing. The simulator has one: ${shellCommand('mock --simulate')}`
    response.json({ jsonrpc: '2.0', id: id ?? null, error: { code: methodNotFound, message } })
  })
}
