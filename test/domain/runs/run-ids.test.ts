/** Ids of runs sort by creation within a process. */
import { expect, test, vi } from 'vitest'
import { createRunId, parseCreatedAt } from '../../../src/domain/runs/run.ts'
import { parseId } from '../../../src/storage/statement-values.ts'

test('ids of runs ascend within a millisecond, and when the clock is set back', (test) => {
  vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + 60_000 })
  test.onTestFinished(() => void vi.useRealTimers())
  const ids: string[] = []
  const create = () => ids.push(...Array.from({ length: 600 }, createRunId))
  create()
  const startedAt = Date.now()
  vi.setSystemTime(startedAt - 5000)
  create()
  vi.setSystemTime(startedAt + 1)
  create()
  expect(ids).toEqual([...new Set(ids)].sort())
  expect(ids.every((id) => parseId(id) === id)).toBe(true)
  expect(new Set(ids.map(parseCreatedAt))).toEqual(new Set([startedAt, startedAt + 1]))
})

test('ids of runs cannot be guessed from each other', () => {
  const ends = Array.from({ length: 2000 }, () => createRunId().slice(-12))
  expect(new Set(ends).size).toBe(2000)
})
