/**
 * Express with express-openapi-validator in its default options, serving both documents: what a service would start with.
 * Sends the milliseconds of CPU until it has loaded both, and ends.
 */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import express from 'express'
import { middleware as openApiValidator } from 'express-openapi-validator'
import { documentNames } from '../src/openapi/document.ts'

const servers = documentNames.map((name) => {
  const apiSpec = new URL(`../generated/${name}/document.json`, import.meta.url).pathname
  const app = express()
  app.use(express.json(), openApiValidator({ apiSpec, validateRequests: true, validateResponses: true }))
  return createServer(app).listen(0, '127.0.0.1')
})
// It loads a document before its first response, which is 404 here.
for (const server of servers) await fetch(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`)
const { user, system } = process.cpuUsage()
process.send?.((user + system) / 1000, () => process.exit())
