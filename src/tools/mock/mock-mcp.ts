/** `/mcp` of the mock: an error that MCP clients show, since every tool of the service needs what was queued before. */
import express, { type RequestHandler } from 'express'
import { shellCommand } from '../../config/command-line.ts'

const parseJson = express.json({ limit: '1mb', type: () => true })

/** JSON-RPC 2.0, section 5.1. */
const methodNotFound = -32_601

export const refuseMcp: RequestHandler = (request, response) => {
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
