/** Costly work runs a few at a time, in turn by account. */
import { setImmediate as nextTick } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { FairRunner, TooMuchWork } from '../../src/domain/fair-runner.ts'

/** Work that ends when the test says so. */
function tracked(runner: FairRunner) {
  const started: string[] = []
  const ends = new Map<string, () => void>()
  let running = 0
  let most = 0
  const run = (account: string | null, name: string, signal?: AbortSignal) =>
    runner.run(
      account,
      async () => {
        started.push(name)
        running += 1
        most = Math.max(most, running)
        await new Promise<void>((resolve) => ends.set(name, resolve))
        running -= 1
        return name
      },
      signal,
    )
  const end = async (name: string) => {
    await nextTick()
    ends.get(name)?.()
    await nextTick()
  }
  return { run, end, started, most: () => most }
}

test('an account has one slot, and those that wait are served in turn', async () => {
  const { run, end, started, most } = tracked(new FairRunner({ concurrency: 2, perAccountMax: 10 }))
  const all = ['a1', 'a2', 'a3', 'b1', 'b2', 'c1'].map((name) => run(name[0] as string, name))
  for (const name of ['a1', 'b1', 'c1', 'a2', 'b2', 'a3']) await end(name)
  expect(started).toEqual(['a1', 'b1', 'c1', 'a2', 'b2', 'a3'])
  expect(await Promise.all(all)).toEqual(['a1', 'a2', 'a3', 'b1', 'b2', 'c1'])
  expect(most()).toBe(2)
})

test('work beyond the limit of its account is refused, and other accounts and the installation are not', async () => {
  const { run, end } = tracked(new FairRunner({ concurrency: 1, perAccountMax: 2 }))
  const running = [run('a', 'a1'), run('a', 'a2')]
  await expect(run('a', 'a3')).rejects.toThrow(TooMuchWork)
  running.push(run('b', 'b1'), ...['n1', 'n2', 'n3'].map((name) => run(null, name)))
  for (const name of ['a1', 'b1', 'n1', 'a2', 'n2', 'n3']) await end(name)
  expect(await Promise.all(running)).toHaveLength(6)
  const again = run('a', 'a4')
  await end('a4')
  expect(await again).toBe('a4')
})

test('work whose caller has gone is dropped, and work that fails frees its slot', async () => {
  const runner = new FairRunner({ concurrency: 1, perAccountMax: 5 })
  const { run, end, started } = tracked(runner)
  const first = run('a', 'a1')
  const gone = new AbortController()
  const dropped = run('b', 'b1', gone.signal)
  gone.abort(new Error('gone'))
  await expect(dropped).rejects.toThrow('gone')
  await end('a1')
  await first
  await expect(runner.run('a', () => Promise.reject(new Error('failed')))).rejects.toThrow('failed')
  const last = run('c', 'c1')
  await end('c1')
  await last
  expect(started).toEqual(['a1', 'c1'])
})
