/**
 * `/mcp`: the workflows as tools of the Model Context Protocol, by Streamable HTTP. Stateless: each POST has its own
 * server, so that any process can serve it. API keys, scopes, limits and bodies are as for the operations of the API.
 */
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js'
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js'
import type { Request, RequestHandler, Response } from 'express'
import { readBody } from '../../contract/body.ts'
import type { Exchange } from '../../contract/exchange.ts'
import { invalidBody, Problem } from '../../contract/problem.ts'
import type { Principal } from '../../domain/api-keys/api-key.ts'
import { bodyBytesMax, type Operation } from '../../openapi/served-operations.ts'
import { admitCaller, type CallerDependencies, refuse } from '../api-caller.ts'
import { createToolServer, type ToolDependencies } from './workflow-tools.ts'

export interface McpDependencies extends ToolDependencies, CallerDependencies {
  /** Responds with 421 to a request for a Host that is not the service's. */
  checkHost: RequestHandler
}

/** The scopes of the operations that the message stands for. */
const scopesByMethod: Record<string, readonly string[]> = {
  'tools/list': ['workflows:read'],
  'tools/call': ['runs:write', 'runs:read'],
}

const message: Pick<Operation, 'body'> = {
  body: { required: true, mediaTypes: ['application/json'], schemas: [], bytesMax: bodyBytesMax },
}

export function mcpHandler(dependencies: McpDependencies): RequestHandler {
  return (request, response, next) =>
    dependencies.checkHost(request, response, (error?: unknown) =>
      error ? next(error) : serve(dependencies, request, response).catch(next),
    )
}

async function serve(dependencies: McpDependencies, request: Request, response: Response): Promise<void> {
  const exchange: Exchange<Principal> = response.locals.exchange
  if (request.method !== 'POST')
    throw new Problem({ kind: 'method-not-allowed', detail: 'This path has POST.' }, { Allow: 'POST' })
  // Browsers send it with every request of a page, also of one whose name leads to this service (DNS rebinding).
  if (request.headers.origin !== undefined) return refuse(response, 403)
  const caller = await admitCaller(dependencies, request, response)
  if (!caller) return
  const { principal, credential } = caller
  const body = await readBody(message as Operation, request, exchange.tenant)
  exchange.tenant?.endTurn()
  if (Array.isArray(body?.value)) throw invalidBody('', 'must be one message')
  const { method } = Object(body?.value) as { method?: unknown }
  const needed = typeof method === 'string' ? (scopesByMethod[method] ?? []) : []
  if (!caller.hasScopes(needed)) return refuse(response, 403)
  const stillAuthenticated = async () => (await dependencies.apiKeys.authenticate(credential)) !== undefined
  const logError = (err: unknown) => exchange.logError('tool call failed', { err })
  const server = createToolServer(dependencies, { principal, stillAuthenticated, logError })
  const transport = new StreamableHTTPServerTransport({})
  // A client that disconnects ends the wait; the run goes on.
  response.once('close', () => void server.close().catch(logError))
  await server.connect(transport as Transport)
  await transport.handleRequest(request, response, body?.value)
}
