import { expect, test, vi } from 'vitest'
import { Faults, type FaultyOperation } from '../../src/simulator/faults.ts'

const queue: FaultyOperation = { id: 'queueRemoteRun', responses: new Set([200, 429, 500, 503, 507]) }
const read: FaultyOperation = { id: 'getRun', responses: new Set([200, 429, 500, 503]) }

function create(operations: object = {}, seed = 'seed'): Faults {
  const faults = new Faults(seed, [queue, read])
  expect(faults.set({ operations })).toEqual([])
  return faults
}

/** The statuses of as many requests, `dropped…`, or 200 for those that are served. */
async function responses(faults: Faults, operation: FaultyOperation, count: number): Promise<unknown[]> {
  const intercepted = await Promise.all(Array.from({ length: count }, () => faults.intercept(operation)))
  return intercepted.map((each) => (typeof each === 'object' ? each.status : (each ?? 200)))
}

test('without faults every request is served', async () => {
  expect(await responses(create(), queue, 20)).toEqual(Array(20).fill(200))
})

test('requests fail as often as the rate says, each with one of the statuses, and the others are served', async () => {
  const statuses = await responses(create({ queueRemoteRun: { errorRate: 0.5, statuses: [429, 503] } }), queue, 1000)
  const countOf = (status: number) => statuses.filter((each) => each === status).length
  expect(countOf(200)).toBeGreaterThan(420)
  expect(countOf(200)).toBeLessThan(580)
  expect(countOf(429)).toBeGreaterThan(180)
  expect(countOf(503)).toBeGreaterThan(180)
  expect(countOf(200) + countOf(429) + countOf(503)).toBe(1000)
})

test('the same seed and requests fail in the same way, and another seed in another one', async () => {
  const fault = { queueRemoteRun: { errorRate: 0.5, statuses: [503] } }
  const first = await responses(create(fault), queue, 50)
  expect(await responses(create(fault), queue, 50)).toEqual(first)
  expect(await responses(create(fault, 'other'), queue, 50)).not.toEqual(first)
  const faults = create(fault)
  // Requests of other operations change nothing.
  await responses(faults, read, 7)
  expect(await responses(faults, queue, 20)).toEqual(first.slice(0, 20))
  const restored = new Faults('seed', [queue, read])
  restored.restore(JSON.parse(JSON.stringify(faults.save())))
  expect(await responses(restored, queue, 30)).toEqual(first.slice(20))
})

test('each response has the body and the headers that the service sends', async () => {
  const responseOf = async (status: number) => create({ queueRemoteRun: { statuses: [status] } }).intercept(queue)
  expect(await responseOf(429)).toMatchObject({
    problem: { kind: 'rate-limited' },
    headers: { 'Retry-After': '1', RateLimit: '"api-key";r=0;t=1', 'RateLimit-Policy': '"api-key";q=600;w=60' },
  })
  expect(await responseOf(500)).toMatchObject({ problem: { kind: 'internal-error' } })
  expect(await responseOf(503)).toMatchObject({ problem: { kind: 'unavailable' }, headers: { 'Retry-After': '1' } })
  expect(await responseOf(507)).toMatchObject({ problem: { kind: 'storage-quota-exceeded' } })
})

test('a fault of all operations skips statuses that an operation does not document, and gives way to its own', async () => {
  const all = create({ '*': { statuses: [507] } })
  expect(await responses(all, queue, 1)).toEqual([507])
  expect(await responses(all, read, 1)).toEqual([200])
  const own = create({ '*': { statuses: [503] }, getRun: {} })
  expect(await responses(own, queue, 1)).toEqual([503])
  expect(await responses(own, read, 1)).toEqual([200])
})

test('connections are dropped before or after the request is processed', async () => {
  expect(await responses(create({ getRun: { dropConnections: true } }), read, 1)).toEqual(['dropped'])
  expect(await responses(create({ getRun: { dropConnections: 'after' } }), read, 1)).toEqual(['droppedAfterwards'])
  const both = await responses(create({ getRun: { dropConnections: true, statuses: [503] } }), read, 100)
  expect(new Set(both)).toEqual(new Set(['dropped', 503]))
})

test('a request waits for its latency, also if it is served', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout'] })
  try {
    let isDone = false
    const intercepted = create({ getRun: { latencyMs: 500 } })
      .intercept(read)
      .then(() => {
        isDone = true
      })
    await vi.advanceTimersByTimeAsync(499)
    expect(isDone).toBe(false)
    await vi.advanceTimersByTimeAsync(1)
    await intercepted
    expect(isDone).toBe(true)
  } finally {
    vi.useRealTimers()
  }
})

test.each<[string, unknown, object[]]>([
  ['no object', [], [{ pointer: '', detail: 'must be an object, and not an array' }]],
  ['no operations', {}, [{ pointer: '', detail: 'lacks the member "operations"' }]],
  [
    'a mistyped member',
    { operations: { getRun: { latency: 1 } } },
    [{ pointer: '/operations/getRun/latency', detail: 'is not a known member: did you mean "latencyMs"?' }],
  ],
  [
    'an unknown operation',
    { operations: { getRuns: {} } },
    [{ pointer: '/operations/getRuns', detail: 'is no operation: did you mean "getRun"?' }],
  ],
  [
    'a rate above 1',
    { operations: { '*': { errorRate: 20, statuses: [503] } } },
    [{ pointer: '/operations/*/errorRate', detail: 'must be <= 1, and not 20' }],
  ],
  [
    'another status',
    { operations: { '*': { statuses: [404] } } },
    [{ pointer: '/operations/*/statuses/0', detail: 'cannot be 404: the values are 429, 500, 503, 507' }],
  ],
  [
    'an undocumented status',
    { operations: { getRun: { statuses: [503, 507] } } },
    [{ pointer: '/operations/getRun/statuses/1', detail: 'is 507, which getRun does not document' }],
  ],
  [
    'a rate of nothing',
    { operations: { getRun: { errorRate: 1 } } },
    [{ pointer: '/operations/getRun/errorRate', detail: 'needs "statuses" or "dropConnections"' }],
  ],
])('refuses %s with its place, and changes nothing', (_, body, errors) => {
  const faults = create({ getRun: { statuses: [503] } })
  expect(faults.set(body)).toEqual(errors)
  expect(faults.current).toEqual({ operations: { getRun: { statuses: [503] } } })
})
