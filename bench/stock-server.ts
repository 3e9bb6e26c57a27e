/**
 * Express with express-openapi-validator in its default options, serving both documents: what a service would start with.
 * Sends the milliseconds of CPU until it has loaded both, and ends.
 */
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import express from 'express'
import { middleware as openApiValidator } from 'express-openapi-validator'
import { documentNames } from '../src/openapi/document.ts'

for (const name of documentNames) {
  const apiSpec = new URL(`../generated/${name}/document.json`, import.meta.url).pathname
  // Express logs errors in other environments.
  const app = express().set('env', 'test')
  app.use(express.json(), openApiValidator({ apiSpec, validateRequests: true, validateResponses: true }))
  const server = createServer(app).listen(0, '127.0.0.1')
  await once(server, 'listening')
  // It loads the document before its first response, which is 404 here.
  await (await fetch(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`)).text()
}
const { user, system } = process.cpuUsage()
process.send?.((user + system) / 1000, () => process.exit())
