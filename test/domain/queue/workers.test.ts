/** Heartbeats of workers. */
import { describe, expect, test, vi } from 'vitest'
import { Workers } from '../../../src/domain/queue/workers.ts'
import { openDomain, type Test } from '../../support/domain.ts'
import { type StoreKind, stores } from '../../support/store-kinds.ts'

const dayMilliseconds = 24 * 60 * 60 * 1000
const first = { id: '1', host: 'here', slots: 4, startedAt: 1000 }
const second = { id: '2', host: 'there', slots: 1, startedAt: 2000 }

async function openAt(test: Test, kind: StoreKind) {
  let time = Date.now()
  const now = () => time
  const domain = await openDomain(test, { kind, now })
  const advance = (milliseconds: number) => {
    time += milliseconds
  }
  return { domain, advance, now, workers: new Workers(domain.store, now) }
}

describe.each(stores)('workers ($name)', (kind) => {
  test('are listed by every process, in the order in which they started', async (test) => {
    const { domain, workers, now } = await openAt(test, kind)
    expect(await workers.alive()).toEqual([])
    await workers.announce(second, 15)
    await workers.announce(first, 15)
    const other = await openDomain(test, { kind, location: domain.location })
    expect(await new Workers(other.store, now).alive()).toEqual([first, second])
  })

  test('are dead when their heartbeat expires, and live again with the next one', async (test) => {
    const { workers, advance } = await openAt(test, kind)
    await workers.announce(first, 15)
    await workers.announce(second, 15)
    advance(14_999)
    expect(await workers.alive()).toEqual([first, second])
    await workers.announce(second, 15)
    advance(1)
    expect(await workers.alive()).toEqual([second])
    await workers.announce(first, 15)
    expect(await workers.alive()).toEqual([first, second])
  })

  test('are removed when they leave', async (test) => {
    const { workers } = await openAt(test, kind)
    await workers.announce(first, 15)
    await workers.announce(second, 15)
    await workers.leave('1')
    expect(await workers.alive()).toEqual([second])
    await workers.leave('1')
  })

  test('are deleted by maintenance a day after their last heartbeat', async (test) => {
    const { domain, workers, advance } = await openAt(test, kind)
    const findAll = () => domain.store.read.all('SELECT id FROM workers', [])
    await workers.announce(first, 15)
    advance(15_000 + dayMilliseconds - 1)
    await workers.announce(second, 15)
    const write = vi.spyOn(domain.store, 'write')
    await domain.maintenance.once()
    expect(write).not.toHaveBeenCalled()
    expect(await findAll()).toHaveLength(2)
    advance(1)
    await domain.maintenance.once()
    expect(await findAll()).toEqual([{ id: '2' }])
  })
})
