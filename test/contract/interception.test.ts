import { describe, expect, test } from 'vitest'
import type { Interception } from '../../src/contract/stages.ts'
import { key, type Sent, serve } from './served.ts'

async function serveIntercepted(interception: Interception) {
  const handled: string[] = []
  const ended: unknown[] = []
  const served = await serve({
    handlers: {
      getBook: async () => {
        handled.push('getBook')
        return { status: 200, body: { title: 'A' } }
      },
    },
    intercept: async ({ id }) => (id === 'getBook' ? interception : undefined),
    observe: (...[id, , status]) => void ended.push([id, status]),
  })
  const get = (path: string, sent: Sent = { headers: [key] }) => served.call('GET', path, sent)
  return { get, handled, ended }
}

describe('an intercepted operation', () => {
  test('responds in place of its handler, and others are served', async () => {
    const problem = { kind: 'unavailable', detail: 'Try again.' }
    const { get, handled } = await serveIntercepted({ status: 503, problem, headers: { 'Retry-After': '1' } })
    const response = await get('/books/a')
    expect(response).toMatchObject({ status: 503, json: { detail: 'Try again.', status: 503 } })
    expect(response.headers).toMatchObject({ 'retry-after': '1', 'content-type': 'application/problem+json' })
    expect(handled).toEqual([])
    expect((await get('/books/best')).status).toBe(200)
  })

  test('loses its connection before it is processed', async () => {
    const { get, handled, ended } = await serveIntercepted('dropped')
    await expect(get('/books/a')).rejects.toThrow(/socket hang up|ECONNRESET/)
    expect(handled).toEqual([])
    expect(ended).toEqual([['getBook', 499]])
  })

  test('loses its connection in place of the response', async () => {
    const { get, handled, ended } = await serveIntercepted('droppedAfterwards')
    await expect(get('/books/a')).rejects.toThrow(/socket hang up|ECONNRESET/)
    expect(handled).toEqual(['getBook'])
    expect(ended).toEqual([['getBook', 499]])
  })

  test('is served if nothing is intercepted', async () => {
    const { get, handled } = await serveIntercepted(undefined)
    expect((await get('/books/a')).status).toBe(200)
    expect(handled).toEqual(['getBook'])
  })
})
