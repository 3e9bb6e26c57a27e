/** Tests createRunToken by documented status, and what its tokens permit. */
import { setTimeout as delay } from 'node:timers/promises'
import { expect, test } from 'vitest'
import type { TestKey } from '../support/service.ts'
import { describeOperation, type Subject } from './describe-operation.ts'
import { expectDocumented, expectProblem, type OperationId, operationOf, operations } from './document.ts'
import { expectInvalid } from './guards.ts'
import { createContext, putArtifact, queueRun, send, sendRequest, validRequest } from './requests.ts'

const readers: OperationId[] = ['getRun', 'streamRunEvents', 'getRunArtifact']

/** A finished run with an artifact, and a token for it. */
async function open(subject: Subject) {
  const account = await subject.service.createAccount()
  const runId = await queueRun(subject.service, account)
  await putArtifact(subject.service, runId)
  await send(subject.service, 'cancelRun', account.key, { path: { runId } }).expect(200)
  const { body } = await subject.call(account.key, { body: { runId, expiresInSeconds: 600 } })
  const read = (id: OperationId, ofRun = runId, token: string = body.token) =>
    send(subject.service, id, token, { path: { runId: ofRun, artifactName: 'hello.txt' } })
  return { account, runId, body, read }
}

describeOperation(
  'createRunToken',
  { worker: false },
  {
    201(subject) {
      test('the token reads the run, its events and its artifacts until it expires', async () => {
        const before = Date.now()
        const { runId, body, read } = await open(subject)
        expect(body).toEqual({ token: expect.stringMatching(/^rt_/), runId, expiresAt: expect.any(String) })
        expect(Math.abs(Date.parse(body.expiresAt) - before - 600_000)).toBeLessThan(10_000)
        for (const id of readers) {
          const response = await read(id)
          expect(response.status).toBe(200)
          expectDocumented(operationOf(id), { ...response, text: response.text ?? response.body.toString() })
          const upperCase = await read(id, runId.toUpperCase())
          expect(upperCase.status).toBe(200)
        }
      })

      test('every other run is forbidden, of the same account or of none', async () => {
        const { account, read } = await open(subject)
        const others = [await queueRun(subject.service, account), crypto.randomUUID(), 'no-id', '%ff']
        for (const id of readers) {
          for (const other of others) {
            const response = await read(id, other)
            expect([response.status, response.text ?? response.body.toString()]).toEqual([403, 'Forbidden'])
          }
        }
      })

      test('every other operation refuses the token, in either header', async () => {
        const { account, body } = await open(subject)
        await createContext(subject.service, account)
        // The preparations are more requests than one key may make in a minute.
        const keys = await Promise.all(Array.from({ length: 4 }, () => account.createKey()))
        for (const [index, operation] of operations.filter(({ id }) => !readers.includes(id)).entries()) {
          const { value: key } = keys[index % keys.length] as TestKey
          const request = await validRequest(subject.service, operation.id, { ...account, key })
          const address =
            operation.surface === 'execution' ? subject.service.executionUrl : subject.service.browserContextUrl
          const { Authorization: _, 'x-service-api-key': __, ...headers } = request.headers
          const asBearer = { ...headers, Authorization: `Bearer ${body.token}` }
          const asKey = { ...headers, 'x-service-api-key': body.token }
          for (const sent of [asBearer, asKey])
            expect([operation.id, (await sendRequest(address, { ...request, headers: sent })).status]).toEqual([
              operation.id,
              401,
            ])
        }
      })

      test('an altered token is refused', async () => {
        const { runId, body, read } = await open(subject)
        const { token } = body
        const altered = [...token].slice(3).map((character: string, index: number) => {
          const changed = character === 'A' ? 'B' : String.fromCharCode(character.charCodeAt(0) ^ 1)
          return token.slice(0, index + 3) + changed + token.slice(index + 4)
        })
        const statuses = new Set<number>()
        for (const each of [...altered, token.slice(0, -1), `${token}A`, `${token}=`, token.toUpperCase(), 'rt_'])
          statuses.add((await read('getRun', runId, each)).status)
        expect([...statuses]).toEqual([401])
      })

      test('the token ends with its API key, at once', async () => {
        const { account, runId, read } = await open(subject)
        const key = await account.createKey()
        const { body } = await subject.call(key.value, { body: { runId, expiresInSeconds: 600 } })
        for (const id of readers) expect((await read(id, runId, body.token)).status).toBe(200)
        await account.deleteKey(key.id)
        for (const id of readers) expect((await read(id, runId, body.token)).status).toBe(401)
      })

      test('an open event stream ends when its token expires', async () => {
        const account = await subject.service.createAccount()
        const runId = await queueRun(subject.service, account)
        const { body } = await subject.call(account.key, { body: { runId, expiresInSeconds: 2 } })
        const started = performance.now()
        const url = `${subject.service.executionUrl}/v1/execution/runs/${runId}/events`
        const response = await fetch(url, { headers: { Authorization: `Bearer ${body.token}` } })
        expect(response.status).toBe(200)
        const ended = await Promise.race([response.text(), delay(10_000, 'still open', { ref: false })])
        expect(ended).toContain('"queued"')
        expect(performance.now() - started).toBeLessThan(6000)
      })

      test('its requests count towards the rate limit of its key', async () => {
        const { account, read } = await open(subject)
        const remaining = (response: { headers: Record<string, string> }) =>
          Number(/r=([0-9]+)/.exec(response.headers.ratelimit ?? '')?.[1])
        const before = remaining(await send(subject.service, 'listRuns', account.key))
        const byToken = remaining(await read('getRun'))
        expect(byToken).toBe(before - 1)
        expect(remaining(await send(subject.service, 'listRuns', account.key))).toBe(before - 2)
      })
    },
    400(subject) {
      test.each<[string, object, string]>([
        ['more than an hour', { expiresInSeconds: 3601 }, '/expiresInSeconds'],
        ['no time', { expiresInSeconds: 0 }, '/expiresInSeconds'],
        ['a fraction of a second', { expiresInSeconds: 1.5 }, '/expiresInSeconds'],
        ['a text as time', { expiresInSeconds: '600' }, '/expiresInSeconds'],
        ['an invalid run id', { runId: 'one' }, '/runId'],
        ['an unknown member', { scopes: [] }, '/scopes'],
      ])('refuses %s', async (_, change, pointer) => {
        const errors = expect.arrayContaining([{ pointer, detail: expect.any(String) }]) as unknown as unknown[]
        const changed = (text: unknown) => JSON.stringify({ ...JSON.parse(String(text)), ...change })
        await expectInvalid(subject, (request) => ({ ...request, body: changed(request.body) }), errors)
      })
    },
    404(subject) {
      test('there is no token for a run of another account, or of none', async () => {
        const [account, other] = [await subject.service.createAccount(), await subject.service.createAccount()]
        for (const runId of [await queueRun(subject.service, other), '0198f2c5-7a10-7c3e-9d51-2f6b8a4e1c07']) {
          const response = await subject.call(account.key, { body: { runId, expiresInSeconds: 60 } })
          expectProblem(subject.operation, response, {
            kind: 'not-found',
            title: 'Not found',
            status: 404,
            detail: 'No such run in this account.',
          })
        }
      })
    },
  },
)
