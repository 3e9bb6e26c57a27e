/** `X-Document-Hash` identifies the document that the service follows. */
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { connect } from 'node:net'
import { text } from 'node:stream/consumers'
import { afterAll, beforeAll, expect, test } from 'vitest'
import * as browserContextClient from '../../generated/browser-context.alpha/client.ts'
import * as executionClient from '../../generated/execution.v1/client.ts'
import { startTestService, type TestService } from '../support/service.ts'

let service: TestService
beforeAll(async () => {
  service = await startTestService({ worker: false })
})
afterAll(() => service.stop())

const surfaces = [
  { name: 'execution.v1', client: executionClient, address: () => service.executionUrl },
  { name: 'browser-context.alpha', client: browserContextClient, address: () => service.browserContextUrl },
]

test.each(surfaces)('every response of $name has the hash of its document, and the client has the same', async (it) => {
  const { servers, ...document } = JSON.parse(readFileSync(`generated/${it.name}/document.json`, 'utf8'))
  expect(servers).toHaveLength(1)
  const expected = createHash('sha256').update(JSON.stringify(document)).digest('hex').slice(0, 16)
  const nowhere = await fetch(`${it.address()}/nowhere`)
  expect([nowhere.status, nowhere.headers.get('x-document-hash')]).toEqual([404, expected])
  const { hostname, port } = new URL(it.address())
  const socket = connect(Number(port), hostname).end('no HTTP at all\r\n\r\n')
  expect(await text(socket)).toMatch(new RegExp(`^HTTP/1.1 400 [^]*X-Document-Hash: ${expected}\r\n`))
  expect(it.client.documentHash).toBe(expected)
})
