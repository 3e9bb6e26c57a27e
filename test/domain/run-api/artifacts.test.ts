/** Artifacts: names, limits, access and retention. */
import { describe, expect, test, vi } from 'vitest'
import { ArtifactError, artifactBytesMax, artifactsMax, traceBytesMax } from '../../../src/domain/runs/artifact.ts'
import { claimOne, createManualClock, failedAttempt, leaseSeconds, noRetry } from '../../support/claims.ts'
import { newAccount, openDomain, queueRun, type Test } from '../../support/domain.ts'
import { type StoreKind, stores } from '../../support/store-kinds.ts'

async function openRunning(test: Test, kind: StoreKind) {
  const clock = createManualClock()
  const domain = await openDomain(test, { kind, now: clock.now })
  const { accountId, principal } = await newAccount(domain)
  const { id: runId } = await queueRun(domain, principal)
  const claim = await claimOne(domain)
  const keep = (name: string, content: Uint8Array = Buffer.from(name), lease = claim) =>
    domain.queue.keepArtifact(lease, { name, mediaType: 'text/plain', content }, [])
  return {
    clock,
    domain,
    accountId,
    principal,
    runId,
    claim,
    keep,
    read: (name: string, account = accountId) => domain.artifacts.read(account, runId, name),
    listed: async () => (await domain.runs.get(accountId, runId))?.artifacts ?? [],
  }
}

describe.each(stores)('artifacts ($name)', (kind) => {
  test('are listed oldest first, and replaced by name', async (test) => {
    const { clock, keep, read, listed, runId } = await openRunning(test, kind)
    for (const name of ['b.txt', 'a.txt']) {
      await keep(name)
      clock.advance(1)
    }
    expect((await listed()).map(({ name }) => name)).toEqual(['b.txt', 'a.txt'])
    await keep('b.txt', Buffer.from('newer'))
    expect((await listed()).map(({ name, sizeBytes }) => [name, sizeBytes])).toEqual([
      ['a.txt', 5],
      ['b.txt', 5],
    ])
    expect(Buffer.from((await read('b.txt'))?.content ?? []).toString()).toBe('newer')
    expect(await read('B.txt')).toBeUndefined()
    expect(await read(runId)).toBeUndefined()
  })

  test('have a later time after each replacement, even if clocks differ', async (test) => {
    const { keep, read, clock } = await openRunning(test, kind)
    const times: number[] = []
    for (const seconds of [0, 0, -10, 20]) {
      clock.advance(seconds)
      await keep('a.txt', Buffer.from(`${times.length}`))
      times.push((await read('a.txt'))?.createdAt ?? 0)
    }
    expect(times).toEqual([...new Set(times)].sort((a, b) => a - b))
  })

  test('are replaced by the workflow alone: evidence gives way, and counts towards none of its limits', async (test) => {
    const { domain, keep, read, listed, claim } = await openRunning(test, kind)
    const keepEvidence = (name: string, content = Buffer.from('evidence')) =>
      domain.queue.keepArtifact(claim, { name, kind: 'evidence', mediaType: 'application/zip', content }, [])
    await keep('own.zip')
    await keepEvidence('own.zip')
    expect(Buffer.from((await read('own.zip'))?.content ?? []).toString()).toBe('own.zip')
    await keepEvidence('trace.zip')
    expect(await listed()).toMatchObject([{ kind: 'workflow' }, { name: 'trace.zip', kind: 'evidence', attempt: 1 }])
    await keep('trace.zip')
    expect(await listed()).toMatchObject([{ kind: 'workflow' }, { name: 'trace.zip', kind: 'workflow' }])
    await expect(keepEvidence('large.zip', Buffer.alloc(traceBytesMax + 1))).rejects.toThrow(ArtifactError)
    for (let count = 2; count < artifactsMax; count += 1) await keep(`${count}.txt`)
    await keepEvidence('large.zip', Buffer.alloc(artifactBytesMax + 1))
    expect(await listed()).toHaveLength(artifactsMax + 1)
  })

  test('of evidence are kept for the last three attempts that have any', async (test) => {
    const { domain, listed, claim } = await openRunning(test, kind)
    const retry = { maxAttempts: 10, backoffSeconds: 0, backoffFactor: 1 }
    let lease = claim
    for (let attempt = 1; attempt <= 5; attempt += 1) {
      const content = Buffer.from('evidence')
      const artifact = { name: `attempt-${attempt}-trace.zip`, kind: 'evidence', mediaType: 'application/zip' } as const
      // The third attempt leaves none.
      if (attempt !== 3) await domain.queue.keepArtifact(lease, { ...artifact, content }, [])
      await domain.queue.complete(lease, failedAttempt, retry)
      lease = await claimOne(domain)
    }
    expect((await listed()).map(({ attempt }) => attempt)).toEqual([2, 4, 5])
  })

  test('are read in part', async (test) => {
    const { domain, accountId, runId, keep } = await openRunning(test, kind)
    const content = Buffer.from(Array.from({ length: 100_000 }, (_, index) => index % 251))
    await keep('bytes', content)
    for (const range of [
      { first: 0, last: 0 },
      { first: 99_990, last: 99_999 },
      { first: 1, last: 99_998 },
    ]) {
      const found = await (await domain.artifacts.find(accountId, runId, 'bytes', () => range))?.read()
      expect(found).toMatchObject({ range, sizeBytes: 100_000 })
      expect(Buffer.from(found?.content ?? []).equals(content.subarray(range.first, range.last + 1))).toBe(true)
    }
  })

  test('are read as they are when another content replaces them in between', async (test) => {
    const { domain, accountId, runId, keep } = await openRunning(test, kind)
    await keep('a.txt', Buffer.from('older'))
    const { all } = domain.store.read
    vi.spyOn(domain.store.read, 'all').mockImplementationOnce(async (...call: Parameters<typeof all>) => {
      const found = await all(...call)
      await keep('a.txt', Buffer.from('newer!'))
      return found as never
    })
    const found = await domain.artifacts.read(accountId, runId, 'a.txt')
    expect(found?.sizeBytes).toBe(6)
    expect(Buffer.from(found?.content ?? []).toString()).toBe('newer!')
  })

  test('are limited to 20 for each run', async (test) => {
    const { keep, listed } = await openRunning(test, kind)
    for (let index = 0; index < 20; index += 1) await keep(`${index}.txt`)
    await expect(keep('20.txt')).rejects.toThrow(new ArtifactError('A run may have at most 20 artifacts.'))
    expect(await keep('7.txt', Buffer.from('replaced'))).toBe(true)
    expect(await listed()).toHaveLength(20)
  })

  test('are limited to 10 MiB each and 50 MiB for each run', async (test) => {
    const { keep, listed } = await openRunning(test, kind)
    const large = Buffer.alloc(artifactBytesMax, 'x')
    await expect(keep('large', Buffer.concat([large, Buffer.of(0)]))).rejects.toThrow(
      'large has 10485761 bytes; an artifact may have at most 10485760.',
    )
    for (let index = 0; index < 5; index += 1) expect(await keep(`${index}`, large)).toBe(true)
    await expect(keep('more', Buffer.of(0))).rejects.toThrow(
      'The artifacts of a run may have at most 52428800 bytes in total.',
    )
    expect(await keep('none', Buffer.of())).toBe(true)
    expect(await keep('4', large)).toBe(true)
    expect((await listed()).reduce((sum, { sizeBytes }) => sum + sizeBytes, 0)).toBe(52_428_800)
  })

  test('that are rejected leave no trace', async (test) => {
    const { claim, domain, listed } = await openRunning(test, kind)
    const event = { at: 0, type: 'artifact', data: { attempt: 1, name: 'x' } } as const
    const refused = { name: '../x', mediaType: 'text/plain', content: Buffer.of() } as const
    await expect(domain.queue.keepArtifact(claim, refused, [event])).rejects.toThrow(ArtifactError)
    expect(await listed()).toEqual([])
    const history = await domain.runs.getWithHistory(claim.accountId, claim.runId, { logsMax: 10 })
    expect(JSON.stringify(history?.history.events)).not.toContain('artifact')
  })

  test('of an attempt that lost its lease are rejected; a later attempt may replace earlier ones', async (test) => {
    const { clock, domain, claim, keep, read } = await openRunning(test, kind)
    await keep('a.txt', Buffer.from('first'))
    clock.advance(leaseSeconds + 1)
    await domain.maintenance.once()
    const second = await claimOne(domain)
    expect(await keep('a.txt', Buffer.from('late'), claim)).toBe(false)
    expect(Buffer.from((await read('a.txt'))?.content ?? []).toString()).toBe('first')
    expect(await keep('a.txt', Buffer.from('second'), second)).toBe(true)
    expect(Buffer.from((await read('a.txt'))?.content ?? []).toString()).toBe('second')
  })

  test('are hidden as soon as they expire, and purged after that', async (test) => {
    const { clock, domain, keep, read, listed, claim } = await openRunning(test, kind)
    for (let index = 0; index < 20; index += 1) await keep(`old ${index}`.replace(' ', '-'))
    const [old] = await listed()
    await domain.queue.complete(claim, { kind: 'succeeded', output: null }, noRetry)
    const days = 24 * 60 * 60
    expect((old?.expiresAt ?? 0) - (old?.createdAt ?? 0)).toBe(30 * days * 1000)
    clock.advance(30 * days - 0.001)
    expect(await read('old-0')).toBeDefined()
    expect(await listed()).toHaveLength(20)
    await domain.maintenance.once()
    const kept = async () => (await domain.store.read.all('SELECT name FROM artifacts', [])).length
    expect(await kept()).toBe(20)
    clock.advance(0.001)
    expect(await read('old-0')).toBeUndefined()
    expect(await listed()).toEqual([])
    await domain.maintenance.once()
    expect(await kept()).toBe(0)
  })

  test('are purged in batches of a few megabytes by one process', async (test) => {
    const { clock, domain, keep } = await openRunning(test, kind)
    for (let index = 0; index < 5; index += 1)
      await keep(`${index}`, Buffer.alloc(index === 0 ? 10 : artifactBytesMax / 3))
    clock.advance(30 * 24 * 60 * 60)
    const other = await openDomain(test, { kind, location: domain.location, now: clock.now })
    const write = vi.spyOn(domain.store, 'write')
    const kept = async () =>
      (await domain.store.read.all<{ name: string }>('SELECT name FROM artifacts ORDER BY name', [])).map(
        ({ name }) => name,
      )
    // The next check comes sooner while there is more.
    expect(await domain.maintenance.once()).toBeLessThan(1000)
    expect(await kept()).toEqual(['2', '3', '4'])
    expect(await other.maintenance.once()).toBeLessThan(1000)
    expect(await kept()).toEqual(['3', '4'])
    write.mockClear()
    expect(await domain.maintenance.once()).toBeGreaterThanOrEqual(1000)
    expect(write).not.toHaveBeenCalled()
    expect(await other.maintenance.once()).toBeLessThan(1000)
    expect(await other.maintenance.once()).toBeGreaterThanOrEqual(1000)
    expect(await kept()).toEqual([])
  })

  test('cannot be read by another account', async (test) => {
    const { domain, keep, read } = await openRunning(test, kind)
    await keep('a.txt')
    const { accountId } = await newAccount(domain)
    expect(await read('a.txt', accountId)).toBeUndefined()
    expect(await read('a.txt')).toMatchObject({ name: 'a.txt', mediaType: 'text/plain' })
  })
})
