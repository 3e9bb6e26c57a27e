import { EventEmitter } from 'node:events'
import { type ClientRequest, request as httpRequest, type IncomingMessage, type ServerResponse } from 'node:http'
import { text } from 'node:stream/consumers'
import { describe, expect, test } from 'vitest'
import { ClientGone } from '../../src/contract/body.ts'
import { JsonText, stringify } from '../../src/contract/i-json.ts'
import { Problem } from '../../src/contract/problem.ts'
import { TenantLimits, tenantLimits } from '../../src/contract/tenant-limits.ts'
import { type Called, jsonType, key, readerKey, serve } from './served.ts'

const mebibyte = 1024 * 1024

/** Requests of tenants whose responses end when `end` is called. */
function start(limits: Partial<typeof tenantLimits> = {}) {
  const all = new TenantLimits(limits)
  return (tenant: string) => {
    const response = new EventEmitter() as ServerResponse
    return { ...bound(all.begin(tenant, response)), end: () => void response.emit('close') }
  }
}

function bound(request: ReturnType<TenantLimits['begin']>) {
  return {
    reserve: request.reserve,
    reserveBytes: (bytes: number) => request.reserveBytes(bytes),
    unlockProcessing: () => request.unlockProcessing(),
  }
}

describe('bytes of large requests', () => {
  test('wait for those of the same tenant, in their order, and not for those of another', async () => {
    const begin = start({ largeBytesMax: 3 * mebibyte })
    const first = begin('a')
    expect(first.reserveBytes(2 * mebibyte)).toBeUndefined()
    const [second, third] = [begin('a'), begin('a')]
    const order: string[] = []
    const waiting = [
      second.reserveBytes(2 * mebibyte)?.then(() => void order.push('second')),
      third.reserveBytes(mebibyte)?.then(() => void order.push('third')),
    ]
    expect(begin('b').reserveBytes(2 * mebibyte)).toBeUndefined()
    first.end()
    await Promise.all(waiting)
    expect(order).toEqual(['second', 'third'])
  })

  test('may exceed the limit in a single request', () => {
    expect(start({ largeBytesMax: mebibyte })('a').reserveBytes(10 * mebibyte)).toBeUndefined()
  })

  test('are refused after the longest wait, and later ones are not kept waiting', async () => {
    const begin = start({ largeBytesMax: 2 * mebibyte, waitMillisecondsMax: 10 })
    begin('a').reserveBytes(mebibyte)
    await expect(begin('a').reserveBytes(2 * mebibyte)).rejects.toMatchObject({
      problem: { kind: 'too-many-concurrent-requests' },
    })
    expect(begin('a').reserveBytes(mebibyte)).toBeUndefined()
  })

  test('of a client that has gone no longer wait', async () => {
    const begin = start({ largeBytesMax: mebibyte })
    const first = begin('a')
    first.reserveBytes(mebibyte)
    const gone = begin('a')
    const waiting = gone.reserveBytes(mebibyte)
    gone.end()
    await expect(waiting).rejects.toThrow(ClientGone)
    first.end()
    expect(begin('a').reserveBytes(mebibyte)).toBeUndefined()
  })

  test('are not reserved for a client that went before its request was counted', async () => {
    const all = new TenantLimits({ requestsMax: 1, largeBytesMax: mebibyte })
    for (let count = 0; count < 2; count++) {
      const request = all.begin('a', Object.assign(new EventEmitter(), { destroyed: true }) as ServerResponse)
      await expect(request.reserve(mebibyte)).rejects.toThrow(ClientGone)
    }
    expect(all.begin('a', new EventEmitter() as ServerResponse).reserve(mebibyte)).toBeUndefined()
  })

  test('below the size of a large request are not counted', () => {
    const begin = start({ largeBytesMax: 1 })
    for (let count = 0; count < 100; count++) expect(begin('a').reserve(32 * 1024 - 1)).toBeUndefined()
  })
})

describe('large requests', () => {
  test('are processed one at a time, rotating between the tenants', async () => {
    const begin = start({ pauseFactor: 0 })
    const order: string[] = []
    const run = (tenant: string, name: string) => {
      const request = begin(tenant)
      const locked = Promise.resolve(request.reserve(mebibyte))
      return locked.then(() => {
        order.push(name)
        request.unlockProcessing()
      })
    }
    await Promise.all([run('a', 'a1'), run('a', 'a2'), run('a', 'a3'), run('b', 'b1'), run('c', 'c1'), run('b', 'b2')])
    expect(order).toEqual(['a1', 'a2', 'b1', 'c1', 'a3', 'b2'])
  })

  test('unlock processing with their response, when nothing else does', async () => {
    const begin = start({ pauseFactor: 0 })
    const first = begin('a')
    first.reserve(mebibyte)
    const second = begin('b').reserve(mebibyte)
    first.end()
    await second
  })
})

test('requests in flight are limited for each tenant, until their responses have ended', () => {
  const begin = start({ requestsMax: 2 })
  const [first] = [begin('a'), begin('a')]
  expect(() => begin('a')).toThrow(Problem)
  begin('b')
  first?.end()
  begin('a')
})

test('the numbers in the problem are the limits', () => {
  const begin = start()
  for (let count = 0; count < tenantLimits.requestsMax; count++) begin('a')
  expect(() => begin('a')).toThrow('This account has 1000 requests in flight. Try again when one has ended.')
})

describe('over HTTP', () => {
  const begun = (port: number, bytes: number): ClientRequest => {
    const headers = { Host: 'library', ...Object.fromEntries([key, jsonType]), 'Content-Length': bytes }
    return httpRequest({ port, method: 'PUT', path: '/books/a', agent: false, headers }).on('error', () => {})
  }
  const answer = async (sent: ClientRequest): Promise<Pick<Called, 'status' | 'text'>> => {
    const response = await new Promise<IncomingMessage>((resolve) => sent.on('response', resolve))
    return { status: response.statusCode ?? 0, text: await text(response) }
  }

  test('a large body waits outside the process while its tenant has others in memory', async () => {
    const limits = new TenantLimits({ largeBytesMax: mebibyte, waitMillisecondsMax: 100, pauseFactor: 0 })
    const { port, call } = await serve({ tenantLimits: limits })
    const body = `{"title":"${'x'.repeat(mebibyte - 12)}"}`
    const slow = begun(port, body.length)
    slow.write(body.slice(0, 100_000))
    const other = answer(begun(port, body.length).end(body))
    const { status, text } = await other
    expect({ status, ...JSON.parse(text) }).toMatchObject({
      status: 429,
      type: '/docs/errors#too-many-concurrent-requests',
    })
    const reader: [string, string] = ['Authorization', `Bearer ${readerKey}`]
    expect(await call('GET', '/books/a', { headers: [reader] })).toMatchObject({ status: 200 })
    slow.end(body.slice(100_000))
    expect(await answer(slow)).toMatchObject({ status: 400 })
    expect(await answer(begun(port, body.length).end(body))).toMatchObject({ status: 400 })
  })
})

describe('JSON text in a response', () => {
  test('is sent as it is, wherever it stands', () => {
    const texts = ['{"a":[1,{"b":"ä"}]}', 'null', '"x"']
    const [first, second, third] = texts.map((each) => new JsonText(each))
    expect(stringify({ data: [{ first, second }, 'x', { third }], none: null })).toBe(
      `{"data":[{"first":${texts[0]},"second":null},"x",{"third":"x"}],"none":null}`,
    )
    expect(stringify(first)).toBe(texts[0])
    expect(stringify({ a: 1 })).toBe('{"a":1}')
  })
})
