/** A process that enqueues a job for each PUT, by `node server.ts FRAMEWORK QUEUE LOCATION`, and sends its port. */
import { createServer, type RequestListener, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import express from 'express'
import { middleware as openApiValidator } from 'express-openapi-validator'
import fastify from 'fastify'
import { executionContract } from '../../src/openapi/served-documents.ts'
import { type Enqueue, queues } from './queues.ts'

const [framework = '', queue = '', location = ''] = process.argv.slice(2)
const enqueue = (await queues[queue]?.open(location)) as Enqueue

/** About as large as the service's response. */
const response = { status: 'queued', workflowId: 'first-line', variableData: {}, padding: 'x'.repeat(400) }

async function store(body: { variableData: { note: string } }) {
  const id = body.variableData.note
  await enqueue({ id })
  return { id, ...response }
}

function send(to: ServerResponse, text: string) {
  to.writeHead(202, { 'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(text) }).end(text)
}

const path = '/v1/execution/queue-remote/:workflowId'

const frameworks: Record<string, () => RequestListener | Promise<RequestListener>> = {
  'node:http': () => (request, to) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk) => chunks.push(chunk))
    request.on('end', async () => send(to, JSON.stringify(await store(JSON.parse(Buffer.concat(chunks).toString())))))
  },
  Express: () => {
    const app = express()
    app.put(path, express.json(), async (request, to) => {
      to.status(202).json(await store(request.body))
    })
    return app
  },
  'Express, EOV': () => {
    const app = express()
    const apiSpec = executionContract.document as never
    app.use(express.json(), openApiValidator({ apiSpec, validateSecurity: false, validateApiSpec: false }))
    app.put(path, async (request, to) => {
      to.status(202).json(await store(request.body))
    })
    return app
  },
  Fastify: async () => {
    const app = fastify()
    app.put(path, (request, reply) => {
      reply.code(202)
      return store(request.body as { variableData: { note: string } })
    })
    await app.ready()
    return app.routing
  },
}

const server = createServer(await frameworks[framework]?.()).listen(0, '127.0.0.1', () => {
  process.send?.({ port: (server.address() as AddressInfo).port })
})
process.on('disconnect', () => process.exit())
