/** listRuns: every status that its document has. */
import { expect, test } from 'vitest'
import { refusesBadCredentials, refusesOtherScopes } from './alike-callers.ts'
import { asksToTryAgain, saysNothingOfFaults } from './alike-faults.ts'
import { limitsRequests } from './alike-limits.ts'
import { expectInvalid, refusesOtherMediaTypes, refusesWhatIsNotDocumented } from './alike-requests.ts'
import { describeOperation, type Subject } from './operation.ts'
import { queueRun, send } from './requests.ts'

/** Lists page by page until there is no next one; returns the ids on each page. */
async function pages(subject: Subject, key: string, query: string): Promise<string[][]> {
  const found: string[][] = []
  let cursor = ''
  do {
    const { body } = await subject.called(key, { query: query + cursor })
    found.push(body.data.map(({ id }: { id: string }) => id))
    cursor = body.nextCursor === null ? '' : `&cursor=${body.nextCursor}`
  } while (cursor !== '')
  return found
}

async function severalRuns(subject: Subject, count: number) {
  const account = await subject.service.createAccount()
  const ids: string[] = []
  for (let index = 0; index < count; index++) ids.unshift(await queueRun(subject.service, account))
  return { account, ids }
}

describeOperation(
  'listRuns',
  { worker: false },
  {
    200(subject) {
      test('lists no runs of an account that has none', async () => {
        const { key } = await subject.service.createAccount()
        expect((await subject.called(key)).body).toEqual({ data: [], nextCursor: null })
      })

      test('lists runs as they are read one by one, newest first', async () => {
        const { account, ids } = await severalRuns(subject, 3)
        const { body } = await subject.called(account.key)
        const one = await send(subject.service, 'getRun', account.key, { path: { runId: ids[0] as string } })
        expect(body.data.map(({ id }: { id: string }) => id)).toEqual(ids)
        expect(body.data[0]).toEqual(one.body)
        expect(body.nextCursor).toBeNull()
      })

      test.each([
        [1, [1, 1, 1, 1, 1]],
        [2, [2, 2, 1]],
        [5, [5]],
        [100, [5]],
      ])('shows each run once on pages of %i', async (limit, lengths) => {
        const { account, ids } = await severalRuns(subject, 5)
        const found = await pages(subject, account.key, `limit=${limit}`)
        expect(found.map((page) => page.length)).toEqual(lengths)
        expect(found.flat()).toEqual(ids)
      })

      test('goes on where a page ended, whatever has been queued since', async () => {
        const { account, ids } = await severalRuns(subject, 3)
        const first = await subject.called(account.key, { query: 'limit=2' })
        await queueRun(subject.service, account)
        const second = await subject.called(account.key, { query: `limit=2&cursor=${first.body.nextCursor}` })
        expect(second.body.data.map(({ id }: { id: string }) => id)).toEqual(ids.slice(2))
      })

      test('goes on with the same filters in another order', async () => {
        const { account, ids } = await severalRuns(subject, 3)
        const first = await subject.called(account.key, { query: 'limit=1&workflowId=greet&status=queued' })
        const query = `status=queued&workflowId=greet&limit=2&cursor=${first.body.nextCursor}`
        const second = await subject.called(account.key, { query })
        expect(second.body.data.map(({ id }: { id: string }) => id)).toEqual(ids.slice(1))
      })

      test('narrows by workflow and by status', async () => {
        const { account, ids } = await severalRuns(subject, 2)
        const file = { path: { workflowId: 'hold' }, body: { variableData: { file: 'none' } } }
        const held = await queueRun(subject.service, account, file)
        await send(subject.service, 'cancelRun', account.key, { path: { runId: ids[0] as string } }).expect(200)
        const listed = async (query: string) => (await pages(subject, account.key, query)).flat()
        expect(await listed('workflowId=hold')).toEqual([held])
        expect(await listed('status=cancelled')).toEqual([ids[0]])
        expect(await listed('workflowId=greet&status=queued')).toEqual([ids[1]])
        expect(await listed('workflowId=no-such-workflow')).toEqual([])
        expect(await listed('status=running')).toEqual([])
      })

      test('narrows by time: createdAfter with its moment, createdBefore without it', async () => {
        const { account, ids } = await severalRuns(subject, 3)
        const { body } = await subject.called(account.key)
        const moment: string = body.data[1].createdAt
        const at = (id: string) => body.data.find((run: { id: string }) => run.id === id).createdAt
        const listed = async (query: string) => (await pages(subject, account.key, query)).flat()
        expect(await listed(`createdAfter=${moment}`)).toEqual(ids.filter((id) => at(id) >= moment))
        expect(await listed(`createdBefore=${moment}`)).toEqual(ids.filter((id) => at(id) < moment))
        expect(await listed(`createdAfter=${moment}&createdBefore=${moment}`)).toEqual([])
        expect(await listed('createdAfter=2999-01-01T00:00:00%2B01:00')).toEqual([])
        expect(await listed('createdBefore=1960-01-01T00:00:00Z')).toEqual([])
      })
    },
    400(subject) {
      refusesWhatIsNotDocumented(subject)

      const notACursor = [{ parameter: 'cursor', detail: 'is not a cursor of this list' }]

      test('refuses each character of a cursor that was changed', async () => {
        const { account } = await severalRuns(subject, 2)
        const list = (query: string) => send(subject.service, 'listRuns', account.key, { query })
        const { nextCursor } = (await list('limit=1')).body
        const accepted: number[] = []
        for (let index = 0; index < nextCursor.length; index++) {
          // The next character of base64url: of the last one, it differs in bits that no byte needs.
          const changed = nextCursor[index] === 'A' ? 'B' : String.fromCharCode(nextCursor.charCodeAt(index) ^ 1)
          const answer = await list(
            `limit=1&cursor=${nextCursor.slice(0, index)}${changed}${nextCursor.slice(index + 1)}`,
          )
          if (answer.status !== 400) accepted.push(index)
        }
        expect(accepted).toEqual([])
        const answer = await subject.called(account.key, { query: `limit=1&cursor=${nextCursor}A` })
        expect(answer.body.errors).toEqual(notACursor)
      })

      test('refuses a cursor of another account', async () => {
        const { account } = await severalRuns(subject, 2)
        const { account: other } = await severalRuns(subject, 2)
        const { body } = await send(subject.service, 'listRuns', account.key, { query: 'limit=1' })
        const answer = await subject.called(other.key, { query: `limit=1&cursor=${body.nextCursor}` })
        expect(answer.body.errors).toEqual(notACursor)
      })

      test.each(['', 'status=queued', 'workflowId=hold', 'workflowId=greet&createdAfter=2020-01-01T00:00:00Z'])(
        'refuses a cursor with other filters than it was made for (%s)',
        async (filters) => {
          const { account } = await severalRuns(subject, 2)
          const { body } = await send(subject.service, 'listRuns', account.key, { query: 'limit=1&workflowId=greet' })
          const answer = await subject.called(account.key, { query: `${filters}&cursor=${body.nextCursor}` })
          expect(answer.body.errors).toEqual(notACursor)
        },
      )

      test('refuses a cursor of another list', async () => {
        const { account } = await severalRuns(subject, 1)
        const { service } = subject
        for (const name of ['one', 'two']) {
          await send(service, 'createBrowserContext', account.key, { body: { name } }).expect(201)
        }
        const { body } = await send(service, 'listBrowserContexts', account.key, { query: 'limit=1' })
        const answer = await subject.called(account.key, { query: `cursor=${body.nextCursor}` })
        expect(answer.body.errors).toEqual(notACursor)
      })

      test('names the parameter that is out of bounds', async () => {
        const withLimit = (limit: number) => (request: { method: string; path: string; headers: object }) => ({
          ...request,
          headers: request.headers as Record<string, string>,
          path: `${request.path}?limit=${limit}`,
        })
        await expectInvalid(subject, withLimit(0), [{ parameter: 'limit', detail: 'must be >= 1' }])
        await expectInvalid(subject, withLimit(101), [{ parameter: 'limit', detail: 'must be <= 100' }])
      })
    },
    401: refusesBadCredentials,
    403: refusesOtherScopes,
    406: refusesOtherMediaTypes,
    429: limitsRequests,
    500: saysNothingOfFaults,
    503: asksToTryAgain,
  },
)
