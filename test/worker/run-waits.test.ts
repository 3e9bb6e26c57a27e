/** The waits of an attempt in its executor. */
import { afterEach, expect, test, vi } from 'vitest'
import type { AttemptMessage } from '../../src/worker/executors/messages.ts'
import { RunWaits } from '../../src/worker/executors/run-waits.ts'

afterEach(() => void vi.useRealTimers())

test('a sleep that is due by this clock alone asks the store at most ten times a second', async () => {
  vi.useFakeTimers()
  const sent: AttemptMessage[] = []
  const waits = new RunWaits({
    ...{ recorded: [], isBusy: () => false, hasOpenBrowser: () => false, checkReusable: async () => true },
    ...{ now: Date.now, stayMilliseconds: 2000 },
    send: (message) => {
      sent.push(message)
      setImmediate(() =>
        waits.onReply({ type: 'waitsEnded', attempt: 1, ended: [], refused: [], deadlines: {}, secrets: [] }),
      )
    },
  })
  void waits.wait({ name: 'pause', kind: 'sleep', deadline: Date.now() + 500 })
  await vi.advanceTimersByTimeAsync(1500)
  // The first says that the sleep is there.
  expect(sent.length).toBeGreaterThan(9)
  expect(sent.length).toBeLessThanOrEqual(12)
})
