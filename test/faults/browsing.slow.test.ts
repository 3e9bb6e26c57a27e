/** Runs with a real browser: what is restored, what is saved, and their isolation. */
import { writeFileSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { PersistContext } from '../../src/domain/runs/run.ts'
import { createState } from '../support/browser-contexts.ts'
import { openBrowsing } from '../support/browsing.ts'
import { findCanaries, readFiles } from '../support/canaries.ts'
import type { Test } from '../support/domain.ts'
import { describeEvents, startWorker, waitForRun, waitForStart } from '../support/worker.ts'

/** Runs after the tests of this file. */
const endings: Parameters<Test['onTestFinished']>[0][] = []
const file: Test = { onTestFinished: (end) => void endings.push(end) }
const apiKey = { apiKeyId: 'a key' }
const canaries: string[] = []
const canary = (name: string) => {
  const value = `canary-${crypto.randomUUID()}-${name}`
  canaries.push(value)
  return value
}

let site: Awaited<ReturnType<typeof openBrowsing>>
let workerLog: string[]
beforeAll(async () => {
  site = await openBrowsing(file)
  const options = { slots: 4, memoryMegabytesMax: 256, abortGraceSeconds: 20 }
  const { log } = await startWorker(file, site.domain, options)
  workerLog = log
  // All tests share a running browser, as the runs of a worker do.
  await site.visited({})
})
afterAll(async () => {
  for (const end of endings.reverse()) await end(undefined as never)
})

const noData = { cookies: '', local: '', database: '', session: '' }
const all = (value: string) => ({ cookies: `visit=${value}`, local: value, database: value, session: value })

describe.concurrent('a run with a browser', () => {
  test('starts with what the previous run has saved, except session storage', async () => {
    const contextId = await site.createContext()
    const [one, two] = [canary('one'), canary('two')]
    const first = await site.visited({ contextId, value: one })
    expect([first.before, first.after]).toEqual([noData, all(one)])
    expect(await site.context(contextId)).toMatchObject({
      status: 'ready',
      version: 1,
      heldByRunId: null,
      cookieDomains: ['127.0.0.1'],
    })
    const second = await site.visited({ contextId, value: two })
    expect([second.before, second.after]).toEqual([{ ...all(one), session: '' }, all(two)])
    const reader = await site.visited({ contextId, persist: 'never', value: canary('unkept') })
    expect(reader.before).toEqual({ ...all(two), session: '' })
    expect(await site.context(contextId)).toMatchObject({ version: 2 })
    const [version] = (await site.domain.contextVersions.list(site.accountId, contextId)) ?? []
    expect(version).toMatchObject({ number: 2, apiKeyId: null, runId: expect.any(String) })
    // Without a browser context, nothing is restored.
    expect((await site.visited({})).before).toEqual(noData)
  })

  // One `never` is enough: these runs cannot change the context.
  test.for<[end: string, how: string, status: string, kept: PersistContext[], not: PersistContext[]]>([
    ['succeeds', 'staying', 'succeeded', ['onSuccess', 'always'], ['never']],
    ['fails', 'failing', 'failed', ['always'], ['onSuccess']],
    ['is cancelled', 'staying', 'cancelled', ['always'], ['onSuccess']],
    ['is out of time', 'staying', 'timedOut', ['always'], ['onSuccess']],
  ])('that %s keeps what persistContext says', async ([end, how, status, kept, not]) => {
    const seen = [...kept, ...not].map(async (persist) => {
      const [contextId, value] = [await site.createContext(), canary(persist)]
      await site.domain.contextVersions.replace(site.accountId, contextId, createState('before'), apiKey)
      const [startedAt, until] = [site.file(`started ${value}`), site.file('never there')]
      const run = await site.visit({
        ...{ contextId, value, persist, how },
        ...(end.startsWith('is ') && { started: startedAt, until }),
        ...(end === 'is out of time' && { workflowId: 'browse-briefly' }),
      })
      if (end === 'is cancelled') {
        await waitForStart(startedAt)
        await site.domain.runs.cancel(site.accountId, run.id)
      }
      expect(await waitForRun(site.domain, run)).toMatchObject({ status })
      const context = await site.context(contextId)
      expect(context).toMatchObject({ status: 'ready', heldByRunId: null })
      const isKept = context?.version === 2
      // The time limit may pass before the visit.
      const stored = (await site.stored(contextId)).includes(value)
      if (end !== 'is out of time' || !isKept) expect(stored).toBe(isKept)
      return { persist, isKept }
    })
    const expected = [
      ...kept.map((persist) => ({ persist, isKept: true })),
      ...not.map((persist) => ({ persist, isKept: false })),
    ]
    expect(await Promise.all(seen)).toEqual(expected)
  })

  test.for(['closing', 'closing the browser'])('saves its state when its workflow ended with %s', async (how) => {
    const [contextId, value] = [await site.createContext(), canary('closed')]
    await site.visited({ contextId, value, how })
    expect(await site.context(contextId)).toMatchObject({ version: 1, heldByRunId: null })
    expect(await site.stored(contextId)).toContain(value)
  })

  test('saves nothing and starts no browser when its workflow does not ask for one', async () => {
    const contextId = await site.createContext()
    await site.visited({ contextId, how: 'idle', persist: 'always' })
    expect(await site.context(contextId)).toMatchObject({ status: 'empty', version: 0, lastUsedAt: expect.any(Number) })
  })

  test('leaves the previous version unchanged and no page open when its process ends', async () => {
    const contextId = await site.createContext()
    await site.domain.contextVersions.replace(site.accountId, contextId, createState('before'), apiKey)
    const [until, held] = [site.file('until exit'), site.site.held()]
    const run = await site.visit({ contextId, value: canary('lost'), how: 'exiting', until, persist: 'always' })
    const { closed } = await held
    expect(await site.context(contextId)).toMatchObject({ status: 'inUse', heldByRunId: run.id })
    writeFileSync(until, '')
    expect(await waitForRun(site.domain, run)).toMatchObject({ status: 'failed', reason: 'workflowExited' })
    await closed
    expect(await site.context(contextId)).toMatchObject({ status: 'ready', version: 1, heldByRunId: null })
    expect(await site.stored(contextId)).toBe(createState('before'))
  })

  test('ends normally when its context is deleted, and logs that nothing was saved', async () => {
    const contextId = await site.createContext()
    const [startedAt, until] = [site.file('started deleted'), site.file('until deleted')]
    const run = await site.visit({ contextId, value: canary('deleted'), started: startedAt, until })
    await waitForStart(startedAt)
    const waiting = await site.visit({ contextId, how: 'idle' })
    expect(waiting.waitingFor).toBe('browserContext')
    expect(await site.domain.browserContexts.delete(site.accountId, contextId)).toBe(true)
    writeFileSync(until, '')
    expect(await waitForRun(site.domain, run)).toMatchObject({ status: 'succeeded', error: null })
    const lines = await describeEvents(site.domain, run)
    expect(lines).toContain('warn: The browser context was deleted during the run: its changes were not saved.')
    // The run that waited for the context goes on.
    expect(await waitForRun(site.domain, waiting)).toMatchObject({ status: 'succeeded' })
  })

  test('fails when its state is too large to save, and logs it if it fails anyway', async () => {
    const contextId = await site.createContext()
    const large = await waitForRun(site.domain, await site.visit({ contextId, how: 'hoarding' }))
    const message = expect.stringMatching(
      /^The browser has \d{7} bytes of cookies and storage; at most 5242880 can be saved\.$/,
    )
    const failed = { status: 'failed', reason: 'contextNotSaved', error: { name: 'ContextNotSaved', message } }
    expect(large).toMatchObject(failed)
    expect(await site.context(contextId)).toMatchObject({ status: 'empty', heldByRunId: null })
  })

  test('exposes no cookie of its context in its events', async () => {
    const contextId = await site.createContext()
    const [kept, set] = [canary('kept'), canary('set')]
    await site.domain.contextVersions.replace(site.accountId, contextId, createState(kept, '127.0.0.1'), apiKey)
    // A cookie that it sets itself is known, and masked, at its end.
    for (const [value, masked] of [
      [undefined, kept],
      [set, set],
    ] as const) {
      const run = await site.visit({ contextId, how: 'telling', persist: 'always', ...(value && { value }) })
      const ended = await waitForRun(site.domain, run)
      expect(ended).toMatchObject({
        status: 'failed',
        error: { message: expect.stringMatching(/^The site says \*{8}(,\*{8})?\.$/) },
      })
      const visible =
        value === undefined
          ? [JSON.stringify(ended), ...(await describeEvents(site.domain, run))]
          : [JSON.stringify(ended.error)]
      expect(
        findCanaries(
          visible.map((line) => [line, line]),
          [masked],
        ),
      ).toEqual([])
    }
  })

  test('sees no data of simultaneous runs, or of earlier runs in its process', async () => {
    const contexts = await Promise.all(
      [1, 2].map(async () => ({ id: await site.createContext(), value: canary('side') })),
    )
    const round = async (name: string, expected: (value: string) => object) => {
      const until = site.file(`until ${name}`)
      const runs = contexts.map(({ id, value }) =>
        site.visited({ contextId: id, value, until, started: site.file(`${name} ${value}`) }),
      )
      // Each reads everything after all have stored something.
      await Promise.all(contexts.map(({ value }) => waitForStart(site.file(`${name} ${value}`))))
      writeFileSync(until, '')
      const seen = await Promise.all(runs)
      expect(seen.map(({ before }) => before)).toEqual(contexts.map(({ value }) => expected(value)))
      expect(seen.map(({ after }) => after)).toEqual(contexts.map(({ value }) => all(value)))
      return seen.map(({ pid }) => pid)
    }
    const first = await round('first', () => noData)
    const second = await round('second', (value) => ({ ...all(value), session: '' }))
    expect(second.some((pid) => first.includes(pid))).toBe(true)
    for (const [index, { id }] of contexts.entries()) {
      const others = contexts.filter((_, other) => other !== index).map(({ value }) => value)
      const stored = await site.stored(id)
      expect(findCanaries([['stored', stored]], others)).toEqual([])
    }
  })
})

test('no state of a browser appears in a file of the data directory or in the log', async () => {
  const { location } = site.domain
  expect(canaries.length).toBeGreaterThan(15)
  const visible = canaries.filter((value) => !value.endsWith('-set'))
  const outputs = await site.domain.store.read.all<{ id: string }>(
    "SELECT id FROM runs WHERE output LIKE '%canary-%'",
    [],
  )
  expect(outputs).not.toEqual([])
  // The variables and output of the test's workflow contain the values, as they may.
  await site.domain.store.write(async ({ query }) => {
    await query.updateTable('runs').set({ output: null, variables: '{}' }).execute()
  })
  await site.domain.store.write((tx) => tx.all('SELECT 1', []))
  const rows = await site.domain.store.read.all<object>('SELECT * FROM run_events', [])
  expect(findCanaries([['events', JSON.stringify(rows)]], visible)).toEqual([])
  expect(findCanaries([['log', workerLog.join('\n')]], canaries)).toEqual([])
  expect(workerLog.join('\n')).toContain('browser started')
  expect(readFiles(location).length).toBeGreaterThan(0)
})
