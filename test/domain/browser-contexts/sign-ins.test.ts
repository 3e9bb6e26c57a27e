/** Sign-ins of browser contexts: one run signs in for all that wait, by the clock and by hand, and fails in the open. */
import { describe, expect, test, vi } from 'vitest'
import { type Actor, operator } from '../../../src/domain/audit-log/audit-log.ts'
import type { Claim } from '../../../src/domain/queue/attempts.ts'
import { secretsAad } from '../../../src/domain/runs/run.ts'
import { browserWorkflow, createState, openWithContext } from '../../support/browser-contexts.ts'
import { claimAll, createManualClock, failedAttempt, noRetry } from '../../support/claims.ts'
import { type Test, workflow } from '../../support/domain.ts'
import { type StoreKind, stores } from '../../support/store-kinds.ts'

const password = 'canary-pass-41b7'
const seed = 'JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP'
const given = { workflowId: 'sign-in', variables: { user: 'ada', password }, totpSeed: seed }
const signInWorkflow = workflow({
  id: 'sign-in',
  usesBrowser: true,
  signsIn: true,
  checksSession: true,
  variables: {
    type: 'object',
    required: ['user', 'password'],
    properties: { user: { type: 'string' }, password: { type: 'string', writeOnly: true } },
  },
})
const succeeded = { kind: 'succeeded', output: null } as const
const signedOutOf = ({ contextVersion }: Claim) =>
  ({
    kind: 'signedOut',
    executedMilliseconds: 5,
    contextVersion,
    error: { name: 'SignedOut', message: 'The browser context is signed out.' },
  }) as const

async function open(test: Test, kind: StoreKind, changes: Partial<typeof given & { checkEverySeconds: number }> = {}) {
  const clock = createManualClock()
  const observer = { finished: vi.fn(), leasesExpired: vi.fn(), signedOut: vi.fn(), signInEnded: vi.fn() }
  const workflows = [browserWorkflow, signInWorkflow, { ...signInWorkflow, id: 'other-sign-in' }, workflow()]
  const opened = await openWithContext(test, { kind, now: clock.now, workflows, observer })
  const { domain, accountId, contextId } = opened
  const set = (more: Partial<typeof given & { checkEverySeconds: number }> = {}) =>
    domain.signIns.set(accountId, contextId, { ...given, ...changes, ...more }, operator)
  expect(await set()).toMatchObject({ kind: 'set', signIn: { status: 'unknown' } })
  const claims = () => claimAll(domain.queue, domain)
  const complete = (claim: Claim, outcome: Parameters<typeof domain.queue.complete>[1], retry = noRetry) =>
    domain.queue.complete(claim, outcome, retry)
  /** Completes a sign-in, with a new version. */
  const signIn = async (claim: Claim, value = 'new') => {
    const state = { captured: { json: createState(value) }, restored: undefined, redact: (text: string) => text }
    const saved = await domain.runContexts.save(claim, succeeded, state)
    await domain.queue.complete(claim, saved.outcome, noRetry, saved.reports, saved.within)
  }
  const get = () => domain.signIns.get(accountId, contextId)
  const history = () => domain.signIns.history(accountId, contextId)
  return { ...opened, clock, observer, set, claims, complete, signIn, get, history }
}

/** A run that waits for a session, and the claim of the run that signs in. */
async function openSignedOut(test: Test, kind: StoreKind, more: Parameters<typeof open>[2] = {}) {
  const opened = await open(test, kind, more)
  const run = await opened.queue()
  const [claim] = await opened.claims()
  await opened.complete(claim as Claim, signedOutOf(claim as Claim))
  const [signing, ...others] = await opened.claims()
  expect(others).toEqual([])
  return { ...opened, waiting: run, signing: signing as Claim }
}

describe.each(stores)('sign-ins of browser contexts ($name)', (kind) => {
  test('one run signs in for all that wait, without an attempt, and all go on with the new version', async (test) => {
    const { queue, claims, complete, signIn, get, history, run, domain, accountId, observer } = await open(test, kind)
    const runs = [await queue(), await queue({ persist: 'never' }), await queue({ persist: 'never' }), await queue()]
    const found = await claims()
    // The last one waits for the lease.
    expect(found.map(({ runId, hasSignIn, contextVersion }) => [runId, hasSignIn, contextVersion])).toEqual(
      runs.slice(0, 3).map(({ id }) => [id, true, 0]),
    )
    for (const claim of found) await complete(claim, signedOutOf(claim))
    const [signing, ...others] = await claims()
    expect(others).toEqual([])
    expect(signing).toMatchObject({ workflowId: 'sign-in', signsIn: 'signIn', variables: { password: '********' } })
    const secrets = domain.encryption.decrypt(
      signing?.secrets as Uint8Array,
      secretsAad(accountId, signing?.runId as string),
    )
    expect(JSON.parse(secrets)).toEqual({ '/password': password, totp: { seed, options: [6, 30, 1] } })
    expect(await get()).toMatchObject({ status: 'signingIn', runId: signing?.runId, waitingRuns: 3, hasTotp: true })
    for (const { id } of runs.slice(0, 3)) {
      const shown = await domain.runs.getWithWaiting(accountId, id)
      expect(shown).toMatchObject({ status: 'waiting', waitingFor: 'signIn', attempts: 1, availableAt: null })
      const message = `Run ${signing?.runId} signs the browser context in.`
      expect(shown?.waitingForDetail).toEqual({ kind: 'signIn', name: signing?.runId, message })
    }
    const behind = await domain.runs.getWithWaiting(accountId, runs[3]?.id as string)
    expect(behind).toMatchObject({ waitingFor: 'browserContext' })
    expect(behind?.waitingForDetail).toMatchObject({ kind: 'browserContext', name: signing?.runId })
    await signIn(signing as Claim)
    expect(await get()).toMatchObject({
      status: 'signedIn',
      runId: null,
      waitingRuns: 0,
      signedInAt: expect.any(Number),
    })
    const entry = { kind: 'signIn', cause: 'signedOut', causedByRunId: runs[0]?.id, outcome: 'signedIn', version: 1 }
    expect(await history()).toMatchObject([entry])
    const done: string[] = []
    for (let next = await claims(); next.length > 0; next = await claims()) {
      for (const claim of next) {
        expect(claim).toMatchObject({ number: 1, contextVersion: 1 })
        await complete(claim, succeeded)
        done.push(claim.runId)
      }
    }
    expect(done.toSorted()).toEqual(runs.map(({ id }) => id).toSorted())
    expect(await run(runs[0] as { id: string })).toMatchObject({ status: 'succeeded', attempts: 1 })
    expect(observer.signedOut).toHaveBeenCalledTimes(3)
    expect(observer.signInEnded.mock.calls).toEqual([[{ kind: 'signIn', status: 'succeeded' }]])
  })

  test('a run that found an older version signed out goes on at once', async (test) => {
    const { queue, claims, complete, signIn, get } = await open(test, kind)
    const readers = [await queue({ persist: 'never' }), await queue({ persist: 'never' })]
    const [first, second] = await claims()
    await complete(first as Claim, signedOutOf(first as Claim))
    const [signing] = await claims()
    await signIn(signing as Claim)
    await complete(second as Claim, signedOutOf(second as Claim))
    expect(await get()).toMatchObject({ status: 'signedIn', runId: null })
    expect((await claims()).map(({ runId }) => runId)).toEqual(readers.map(({ id }) => id))
  })

  test('a sign-in that a worker loses is claimed again, and keeps the browser context', async (test) => {
    const { domain, clock, queue, claims, get, signing, context } = await openSignedOut(test, kind)
    const other = await queue()
    clock.advance(60)
    await domain.maintenance.once()
    expect(await context()).toMatchObject({ status: 'inUse', heldByRunId: signing.runId })
    const again = await claims()
    expect(again.map(({ runId, number }) => [runId, number])).toEqual([[signing.runId, 2]])
    expect(await get()).toMatchObject({ status: 'signingIn', runId: signing.runId })
    expect(await domain.runs.get(other.accountId, other.id)).toMatchObject({ waitingFor: 'browserContext' })
  })

  test('a one-time code is given once, also to another attempt in another process', async (test) => {
    const { domain, clock, claims, set, signing } = await openSignedOut(test, kind)
    const { queue } = domain
    expect(await queue.useCode(signing, 100)).toBe(true)
    for (const step of [99, 100]) expect(await queue.useCode(signing, step)).toBe(false)
    clock.advance(60)
    await domain.maintenance.once()
    const [again] = (await claims()) as [Claim]
    expect(await queue.useCode(signing, 101)).toBeUndefined()
    expect(await queue.useCode(again, 100)).toBe(false)
    expect(await queue.useCode(again, 101)).toBe(true)
    // The clock of another worker was wrong.
    expect(await queue.useCode(again, 5000)).toBe(true)
    expect(await queue.useCode(again, 102)).toBe(true)
    const masked = { variables: { user: 'ada', password: '********' }, totpSeed: '********' }
    expect(await set(masked)).toMatchObject({ kind: 'set' })
    expect(await queue.useCode(again, 102)).toBe(false)
    // Codes of another seed are others.
    expect(await set({ totpSeed: 'GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ' })).toMatchObject({ kind: 'set' })
    expect(await queue.useCode(again, 102)).toBe(true)
  })

  test('a run that does not sign in gets no one-time code', async (test) => {
    const { domain, queue, claims } = await open(test, kind)
    await queue()
    const [claim] = (await claims()) as [Claim]
    expect(await domain.queue.useCode(claim, 100)).toBe(false)
  })

  test.for(['failed', 'workerStopped', 'workerLost'] as const)(
    'an attempt to sign in after one that ended as %s repeats all steps',
    async (how, test) => {
      const { domain, clock, claims, complete, signing } = await openSignedOut(test, kind)
      const encrypted = domain.encryption.encrypt('{}', 'a step')
      const step = { name: 'enter password', position: 1 }
      expect(await domain.queue.finishStep(signing, step, () => encrypted, [])).toBe(true)
      if (how === 'failed') await domain.queue.complete(signing, failedAttempt, { ...noRetry, maxAttempts: 2 })
      if (how === 'workerStopped') await complete(signing, { kind: 'workerStopped' })
      clock.advance(60)
      await domain.maintenance.once()
      const [again] = await claims()
      expect(again).toMatchObject({ runId: signing.runId, attempt: 2, steps: [] })
    },
  )

  test('is tried four times with backoff; then a person is needed, once', async (test) => {
    const { domain, accountId, principal, contextId, clock, queue, claims, complete, get, history, signing, waiting } =
      await openSignedOut(test, kind)
    const endpoint = { url: 'https://example.com/', events: ['browserContext.needsSignIn'] as const }
    await domain.webhookEndpoints.create(accountId, endpoint, operator)
    const rule = {
      name: 'Sign-ins',
      events: endpoint.events,
      channel: 'email',
      recipients: ['on@call.example'],
    } as const
    await domain.notificationRules.create(accountId, { ...rule, workflowIds: ['other'] }, operator)
    await domain.notificationRules.create(accountId, { ...rule, events: ['run.expired'] }, operator)
    const delays: number[] = []
    await complete(signing, failedAttempt)
    for (let attempt = 2; attempt <= 4; attempt += 1) {
      const { availableAt } = (await domain.runs.get(accountId, signing.runId)) as { availableAt: number }
      delays.push(Math.round((availableAt - clock.now()) / 1000))
      clock.set(availableAt)
      await domain.maintenance.once()
      const [claim] = await claims()
      expect(claim).toMatchObject({ runId: signing.runId, number: attempt })
      await complete(claim as Claim, failedAttempt)
    }
    expect(delays).toEqual([30, 120, 480])
    const error = failedAttempt.error
    expect(await get()).toMatchObject({ status: 'needsSignIn', runId: null, waitingRuns: 1, error, nextCheckAt: null })
    expect(await history()).toMatchObject([{ outcome: 'failed', error }])
    expect(await domain.signIns.needed(accountId)).toMatchObject([{ waitingRuns: 1 }])
    const shown = await domain.runs.getWithWaiting(accountId, waiting.id)
    const message = 'The browser context needs a person to sign in.'
    expect(shown?.waitingForDetail).toEqual({ kind: 'signIn', message })
    // A further run finds the same, and starts nothing.
    await queue()
    const [late] = await claims()
    await complete(late as Claim, signedOutOf(late as Claim))
    expect(await claims()).toEqual([])
    expect(await get()).toMatchObject({ status: 'needsSignIn', waitingRuns: 2 })
    await domain.signIns.signInNow(accountId, late?.browserContextId as string, principal)
    const [again] = await claims()
    await domain.queue.complete(again as Claim, { kind: 'cancelled' }, noRetry)
    const deliveries = await domain.store.read.query.selectFrom('webhook_deliveries').selectAll().execute()
    expect(deliveries.map(({ event, run_id }) => [event, run_id])).toEqual([
      ['browserContext.needsSignIn', signing.runId],
    ])
    const collected = domain.store.read.query
      .selectFrom('notification_events')
      .select(['event', 'workflow_id', 'subject'])
    expect(await collected.execute()).toEqual([
      { event: 'browserContext.needsSignIn', workflow_id: '', subject: contextId },
    ])
    expect(await get()).toMatchObject({ status: 'needsSignIn', waitingRuns: 2 })
  })

  test('a run that never finds a session leads to four sign-ins with backoff; then a person is needed', async (test) => {
    const { domain, clock, claims, complete, signIn, get, history, signing, waiting, queue } = await openSignedOut(
      test,
      kind,
    )
    await queue()
    let next: Claim | undefined = signing
    const delays: number[] = []
    const signedOut: string[] = []
    for (let rounds = 0; rounds < 50; rounds += 1) {
      if (next?.signsIn) await signIn(next, `version ${rounds}`)
      else if (next) {
        await complete(next, signedOutOf(next))
        signedOut.push(next.runId)
      } else {
        const { runId } = (await get()) ?? {}
        if (!runId) break
        const { availableAt } = (await domain.runs.get(waiting.accountId, runId)) as { availableAt: number }
        delays.push(Math.round((availableAt - clock.now()) / 1000))
        clock.set(availableAt)
        await domain.maintenance.once()
      }
      ;[next] = await claims()
    }
    expect(delays).toEqual([30, 120, 480])
    expect(await history()).toHaveLength(4)
    expect(await get()).toMatchObject({ status: 'needsSignIn', runId: null, waitingRuns: 2, nextCheckAt: null })
    const error = (await get())?.error
    expect(error?.name).toBe('StillSignedOut')
    expect(error?.message).toBe(
      `The sign-in has succeeded 4 times, but run ${signedOut.at(-2)} of browse has still found no session in the version that it stored.`,
    )
  })

  test('a session that has ended after a run has used it is replaced at once', async (test) => {
    const { domain, queue, claims, complete, signIn, signing, waiting } = await openSignedOut(test, kind)
    await signIn(signing)
    for (let round = 0; round < 6; round += 1) {
      const [user] = await claims()
      await complete(user as Claim, succeeded)
      await queue()
      const [late] = await claims()
      await complete(late as Claim, signedOutOf(late as Claim))
      const [again] = await claims()
      expect(again).toMatchObject({ signsIn: 'signIn' })
      await signIn(again as Claim, `version ${round}`)
    }
    expect(await domain.runs.get(waiting.accountId, waiting.id)).toMatchObject({ status: 'succeeded' })
  })

  test.for([
    ['could not start', 'The run that signs in could not start within an hour: The secret MISSING is not stored.'],
    ['is claimed by no worker', 'No worker has started the run that signs in within an hour.'],
  ])('a sign-in that %s ends after an hour, and a person is needed', async ([how, message], test) => {
    const { domain, clock, queue, claims, complete, get, history, accountId } = await open(test, kind)
    const waiting = await queue()
    const [claim] = await claims()
    await complete(claim as Claim, signedOutOf(claim as Claim))
    const runId = (await get())?.runId as string
    if (how === 'could not start') {
      const [signing] = await claims()
      await domain.queue.handBack(signing as Claim, 'The secret MISSING is not stored.')
    }
    clock.advance(3599)
    await domain.maintenance.once()
    expect(await get()).toMatchObject({ status: 'signingIn', runId })
    clock.advance(2)
    await domain.maintenance.once()
    const error = { name: 'NotStarted', message }
    expect(await get()).toMatchObject({ status: 'needsSignIn', runId: null, waitingRuns: 1, error })
    expect(await history()).toMatchObject([{ runId, outcome: 'failed', error }])
    expect(await domain.runs.get(accountId, runId)).toMatchObject({ status: 'expired', reason: 'notStartedInTime' })
    expect(await domain.runs.get(accountId, waiting.id)).toMatchObject({ status: 'waiting', waitingFor: 'signIn' })
  })

  test('a sign-in that is not tried again within an hour ends with the error of its last attempt', async (test) => {
    const { domain, clock, complete, get, signing } = await openSignedOut(test, kind)
    await complete(signing, failedAttempt)
    clock.advance(3629)
    await domain.maintenance.once()
    expect(await get()).toMatchObject({ status: 'signingIn' })
    clock.advance(2)
    await domain.maintenance.once()
    expect(await get()).toMatchObject({ status: 'needsSignIn', runId: null, error: failedAttempt.error })
  })

  test('a person who signs in by hand does not wait for a check', async (test) => {
    const { domain, accountId, userId, contextId, clock, claims, complete, signIn, get, history } = await open(
      test,
      kind,
      {
        checkEverySeconds: 60,
      },
    )
    clock.advance(61)
    await domain.maintenance.once()
    const [first] = await claims()
    await signIn(first as Claim)
    clock.advance(61)
    await domain.maintenance.once()
    const [check] = await claims()
    expect(check).toMatchObject({ signsIn: 'check' })
    const notify = vi.spyOn(domain.store, 'notify')
    const started = await domain.signIns.startByHand(accountId, contextId, { kind: 'user', id: userId, name: 'Ada' })
    for (const topic of ['cancellations', 'queue']) expect(notify).toHaveBeenCalledWith(topic)
    expect(await domain.queue.cancelRequested('worker')).toMatchObject([{ runId: check?.runId }])
    await complete(check as Claim, { kind: 'cancelled' })
    const [byHand] = await claims()
    expect(started).toMatchObject({ isNew: true, runId: byHand?.runId })
    await signIn(byHand as Claim, 'by hand')
    expect(await get()).toMatchObject({ status: 'signedIn' })
    expect((await history()).map(({ outcome }) => outcome)).toEqual(['signedIn', 'cancelled', 'signedIn'])
  })

  test('by hand, the state is stored, and all that wait go on', async (test) => {
    const { domain, accountId, userId, contextId, clock, claims, complete, signIn, get, history, signing, waiting } =
      await openSignedOut(test, kind)
    await domain.queue.complete(signing, { kind: 'cancelled' }, noRetry)
    expect(await get()).toMatchObject({ status: 'needsSignIn', waitingRuns: 1 })
    const ada: Actor = { kind: 'user', id: userId, name: 'Ada' }
    const started = await domain.signIns.startByHand(accountId, contextId, ada)
    const [byHand] = await claims()
    expect(byHand).toMatchObject({ signsIn: 'byHand', hasSignIn: true })
    expect(started).toEqual({ kind: 'started', runId: byHand?.runId, isNew: true })
    expect(await domain.signIns.signInNow(accountId, contextId, ada)).toMatchObject({
      isNew: false,
      runId: byHand?.runId,
    })
    await signIn(byHand as Claim)
    expect(await get()).toMatchObject({ status: 'signedIn', needsSignInSince: null, signedInAt: clock.now() })
    expect(await history()).toMatchObject([{ kind: 'byHand', by: ada, outcome: 'signedIn' }, { outcome: 'cancelled' }])
    const [again] = await claims()
    expect(again?.runId).toBe(waiting.id)
    await complete(again as Claim, succeeded)
  })

  test('checks by the clock; what it finds lost is healed before a run needs it', async (test) => {
    const { domain, clock, claims, complete, signIn, get, history, contextId, accountId, queue, createContext } =
      await open(test, kind, { checkEverySeconds: 60 })
    clock.advance(60)
    await domain.maintenance.once()
    // Without a version there is nothing to check.
    const [first] = await claims()
    expect(first).toMatchObject({ signsIn: 'signIn' })
    await signIn(first as Claim)
    expect(await get()).toMatchObject({ nextCheckAt: clock.now() + 60_000 })
    clock.advance(61)
    await domain.maintenance.once()
    const [check] = await claims()
    expect(check).toMatchObject({ signsIn: 'check' })
    expect(await get()).toMatchObject({ status: 'signedIn', runId: check?.runId })
    await complete(check as Claim, succeeded)
    expect(await get()).toMatchObject({ status: 'signedIn', runId: null, checkedAt: clock.now() })
    clock.advance(61)
    await domain.maintenance.once()
    const [second] = await claims()
    await complete(second as Claim, signedOutOf(second as Claim))
    const [healing] = await claims()
    expect(healing).toMatchObject({ signsIn: 'signIn' })
    expect(await domain.runs.get(accountId, second?.runId as string)).toMatchObject({ status: 'succeeded' })
    await signIn(healing as Claim, 'newer')
    expect((await history()).map(({ kind, cause, outcome }) => [kind, cause, outcome])).toEqual([
      ['signIn', 'checkDue', 'signedIn'],
      ['check', 'checkDue', 'signedOut'],
      ['check', 'checkDue', 'signedIn'],
      ['signIn', 'checkDue', 'signedIn'],
    ])
    // A check that fails says nothing.
    clock.advance(61)
    await domain.maintenance.once()
    const [third] = await claims()
    await complete(third as Claim, failedAttempt)
    expect(await get()).toMatchObject({ status: 'signedIn', nextCheckAt: clock.now() + 60_000 })
    expect(await domain.browserContexts.get(accountId, contextId)).toMatchObject({ heldByRunId: null })
    // A context that a run uses is checked later.
    clock.advance(59)
    const run = await queue()
    expect(await claims()).toMatchObject([{ runId: run.id }])
    clock.advance(1)
    await domain.maintenance.once()
    expect(await get()).toMatchObject({ runId: null, nextCheckAt: clock.now() + 60_000 })
    const other = await createContext('other')
    await domain.signIns.set(accountId, other, given, operator)
    expect(await domain.signIns.history(accountId, other)).toEqual([])
  })

  test('a sign-in that cannot be read delays only its own check', async (test) => {
    const { domain, clock, claims, createContext, accountId, contextId } = await open(test, kind, {
      checkEverySeconds: 60,
    })
    const other = await createContext('other')
    await domain.signIns.set(accountId, other, { ...given, checkEverySeconds: 120 }, operator)
    await domain.store.write(async ({ query }) => {
      const rows = query.updateTable('context_sign_ins').set({ secrets: new Uint8Array([1, 2, 3]) })
      await rows.where('browser_context_id', '=', contextId).execute()
    })
    clock.advance(121)
    await domain.maintenance.once()
    expect((await claims()).map(({ browserContextId }) => browserContextId)).toEqual([other])
    const row = domain.store.read.query.selectFrom('context_sign_ins').select('next_check_at')
    const unread = await row.where('browser_context_id', '=', contextId).executeTakeFirst()
    expect(unread?.next_check_at).toBe(clock.now() + 300_000)
  })

  test.for([
    ['a state that a caller stores', 'replace'],
    ['the end of the sign-in', 'delete'],
    ['the end of the browser context', 'deleteContext'],
  ] as const)('runs that wait go on after %s', async ([, how], test) => {
    const { domain, accountId, principal, contextId, claims, get, signing, waiting } = await openSignedOut(test, kind)
    const notify = vi.spyOn(domain.store, 'notify')
    if (how === 'replace') {
      await domain.queue.complete(signing, { kind: 'cancelled' }, noRetry)
      await domain.contextVersions.replace(accountId, contextId, createState('given'), principal)
      expect(await get()).toMatchObject({ status: 'unknown', needsSignInSince: null })
    } else if (how === 'delete') {
      expect(await domain.signIns.delete(accountId, contextId, operator)).toBe(true)
      expect(await domain.queue.cancelRequested('worker')).toMatchObject([{ runId: signing.runId }])
      await domain.queue.complete(signing, { kind: 'cancelled' }, noRetry)
    } else await domain.browserContexts.delete(accountId, contextId)
    if (how !== 'replace') expect(notify).toHaveBeenCalledWith('cancellations')
    const [claim] = await claims()
    expect(claim).toMatchObject({ runId: waiting.id, hasSignIn: how === 'replace' })
  })

  test('a run that waits for too long expires, and says why', async (test) => {
    const { domain, clock, waiting, accountId, complete, signing } = await openSignedOut(test, kind)
    await complete(signing, { kind: 'cancelled' })
    clock.advance(7 * 86_400 + 1)
    await domain.maintenance.once()
    expect(await domain.runs.get(accountId, waiting.id)).toMatchObject({ status: 'expired', reason: 'needsSignIn' })
  })

  test('setting it again keeps masked secrets, and tries at once when a person was needed', async (test) => {
    const { domain, accountId, claims, complete, set, get, signing } = await openSignedOut(test, kind)
    await complete(signing, { kind: 'cancelled' })
    const masked = { variables: { user: 'ada', password: '********' }, totpSeed: '********' }
    expect(await set(masked)).toMatchObject({ kind: 'set', signIn: { status: 'signingIn', hasTotp: true } })
    const [again] = await claims()
    const secrets = domain.encryption.decrypt(
      again?.secrets as Uint8Array,
      secretsAad(accountId, again?.runId as string),
    )
    expect(JSON.parse(secrets)).toMatchObject({ '/password': password, totp: { seed } })
    expect(await get()).toMatchObject({ variables: { user: 'ada', password: '********' } })
  })

  test.for([
    [{ variables: { user: 'grace', password: '********' } }, ['/variableData/password']],
    [{ variables: { user: 'grace', password: 'another' }, totpSeed: '********' }, ['/totpSeed']],
    [
      { variables: { user: 'grace', password: '********' }, totpSeed: '********' },
      ['/variableData/password', '/totpSeed'],
    ],
    [{ workflowId: 'other-sign-in', totpSeed: '********' }, ['/totpSeed']],
  ] as const)('keeps no masked secret with %j', async ([change, pointers], test) => {
    const { set, get, domain } = await open(test, kind)
    const store = () => domain.store.read.query.selectFrom('context_sign_ins').selectAll().executeTakeFirst()
    const before = await store()
    const result = await set(change)
    expect(result).toMatchObject({ kind: 'invalid', errors: pointers.map((pointer) => ({ pointer })) })
    expect(await store()).toEqual(before)
    expect(await get()).toMatchObject({ variables: { user: 'ada', password: '********' }, workflowId: 'sign-in' })
  })

  test('a new password keeps the masked seed', async (test) => {
    const { set, get } = await open(test, kind)
    const change = { variables: { password: 'another', user: 'ada' }, totpSeed: '********' }
    expect(await set(change)).toMatchObject({ kind: 'set', signIn: { hasTotp: true } })
    expect(await get()).toMatchObject({ hasTotp: true, status: 'unknown' })
  })

  test('set several times at once for a browser context without one, each call succeeds', async (test) => {
    const { domain, accountId, contextId, set, get } = await open(test, kind)
    await domain.signIns.delete(accountId, contextId, operator)
    const results = await Promise.all([1, 2, 3, 4, 5].map((minutes) => set({ checkEverySeconds: minutes * 60 })))
    expect(results.map((result) => result.kind)).toEqual(Array(5).fill('set'))
    expect(await get()).toMatchObject({ workflowId: 'sign-in', hasTotp: true })
  })

  test.for([
    [{ workflowId: 'browse' }, '/workflowId'],
    [{ workflowId: 'missing' }, '/workflowId'],
    [{ variables: { user: 'ada' } }, '/variableData/password'],
    [{ totpSeed: '0189' }, '/totpSeed'],
  ] as const)('refuses %j', async ([change, pointer], test) => {
    const { set } = await open(test, kind)
    expect(await set(change as never)).toMatchObject({ kind: 'invalid', errors: [{ pointer }] })
  })

  test('without a sign-in, a signed-out attempt fails', async (test) => {
    const { queue, claims, complete, run, domain, accountId, contextId } = await open(test, kind)
    await domain.signIns.delete(accountId, contextId, operator)
    const queued = await queue()
    const [claim] = await claims()
    expect(claim).toMatchObject({ hasSignIn: false, signsIn: null })
    await complete(claim as Claim, signedOutOf(claim as Claim))
    expect(await run(queued)).toMatchObject({ status: 'failed', error: { name: 'SignedOut' } })
  })
})
