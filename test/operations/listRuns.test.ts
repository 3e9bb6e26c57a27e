/** Tests listRuns by documented status. */
import { expect, test } from 'vitest'
import type { TestKey } from '../support/service.ts'
import { describeOperation, type Subject } from './describe-operation.ts'
import { expectInvalid } from './guards.ts'
import { createContext, queueRun, send } from './requests.ts'

/** The ids on each page, to the last page. */
async function pages(subject: Subject, key: string, query: string): Promise<string[][]> {
  const idsByPage: string[][] = []
  let cursor = ''
  do {
    const { body } = await subject.call(key, { query: query + cursor })
    idsByPage.push(body.data.map(({ id }: { id: string }) => id))
    cursor = body.nextCursor === null ? '' : `&cursor=${body.nextCursor}`
  } while (cursor !== '')
  return idsByPage
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
      test('a new account has no runs', async () => {
        const { key } = await subject.service.createAccount()
        expect((await subject.call(key)).body).toEqual({ data: [], nextCursor: null })
      })

      test('lists runs newest first, as getRun returns them but without the history of attempts', async () => {
        const { account, ids } = await severalRuns(subject, 3)
        const { body } = await subject.call(account.key)
        const one = await send(subject.service, 'getRun', account.key, { path: { runId: ids[0] as string } })
        expect(body.data.map(({ id }: { id: string }) => id)).toEqual(ids)
        const { attemptHistory, ...members } = one.body
        expect(attemptHistory).toEqual([])
        expect(body.data[0]).toEqual(members)
        expect(body.nextCursor).toBeNull()
      })

      test.each([
        [1, [1, 1, 1, 1, 1]],
        [2, [2, 2, 1]],
        [5, [5]],
        [100, [5]],
      ])('lists each run once on pages of %i', async (limit, lengths) => {
        const { account, ids } = await severalRuns(subject, 5)
        const listed = await pages(subject, account.key, `limit=${limit}`)
        expect(listed.map((page) => page.length)).toEqual(lengths)
        expect(listed.flat()).toEqual(ids)
      })

      test('the next page is not affected by runs queued since', async () => {
        const { account, ids } = await severalRuns(subject, 3)
        const first = await subject.call(account.key, { query: 'limit=2' })
        await queueRun(subject.service, account)
        const second = await subject.call(account.key, { query: `limit=2&cursor=${first.body.nextCursor}` })
        expect(second.body.data.map(({ id }: { id: string }) => id)).toEqual(ids.slice(2))
      })

      test('accepts a cursor with the same filters in another order', async () => {
        const { account, ids } = await severalRuns(subject, 3)
        const first = await subject.call(account.key, { query: 'limit=1&workflowId=greet&status=queued' })
        const query = `status=queued&workflowId=greet&limit=2&cursor=${first.body.nextCursor}`
        const second = await subject.call(account.key, { query })
        expect(second.body.data.map(({ id }: { id: string }) => id)).toEqual(ids.slice(1))
      })

      test('filters by workflow and status', async () => {
        const { account, ids } = await severalRuns(subject, 2)
        const file = { path: { workflowId: 'hold' }, body: { variableData: { file: 'none' } } }
        const heldId = await queueRun(subject.service, account, file)
        await send(subject.service, 'cancelRun', account.key, { path: { runId: ids[0] as string } }).expect(200)
        const listed = async (query: string) => (await pages(subject, account.key, query)).flat()
        expect(await listed('workflowId=hold')).toEqual([heldId])
        expect(await listed('status=cancelled')).toEqual([ids[0]])
        expect(await listed('workflowId=greet&status=queued')).toEqual([ids[1]])
        expect(await listed('workflowId=no-such-workflow')).toEqual([])
        expect(await listed('status=running')).toEqual([])
      })

      test('filters by several statuses, in any order', async () => {
        const { account, ids } = await severalRuns(subject, 3)
        await send(subject.service, 'cancelRun', account.key, { path: { runId: ids[1] as string } }).expect(200)
        const listed = async (query: string) => (await pages(subject, account.key, query)).flat()
        expect(await listed('status=cancelled&status=queued&limit=2')).toEqual(ids)
        expect(await listed('status=failed&status=cancelled')).toEqual([ids[1]])
        const { body } = await subject.call(account.key, { query: 'limit=1&status=cancelled&status=queued' })
        const query = `limit=2&status=queued&status=cancelled&cursor=${body.nextCursor}`
        const next = await subject.call(account.key, { query })
        expect(next.body.data.map(({ id }: { id: string }) => id)).toEqual(ids.slice(1))
      })

      test('filters by browser context, also after it was deleted', async () => {
        const account = await subject.service.createAccount()
        const [one, two] = [
          await createContext(subject.service, account),
          await createContext(subject.service, account),
        ] as const
        await queueRun(subject.service, account)
        const queue = async (browserContextId: string) => {
          const runId = await queueRun(subject.service, account)
          await subject.service.change('UPDATE runs SET browser_context_id = ? WHERE id = ?', browserContextId, runId)
          return runId
        }
        const ids = [await queue(one), await queue(two), await queue(one)] as const
        await send(subject.service, 'cancelRun', account.key, { path: { runId: ids[0] } }).expect(200)
        const listed = async (key: string, query: string) => (await pages(subject, key, query)).flat()
        expect(await listed(account.key, `browserContextId=${one}&limit=1`)).toEqual([ids[2], ids[0]])
        expect(await listed(account.key, `browserContextId=${two.toUpperCase()}`)).toEqual([ids[1]])
        expect(await listed(account.key, `browserContextId=${one}&status=cancelled`)).toEqual([ids[0]])
        expect(await listed(account.key, `browserContextId=${one}&workflowId=hold`)).toEqual([])
        await send(subject.service, 'deleteBrowserContext', account.key, { path: { browserContextId: two } })
        expect(await listed(account.key, `browserContextId=${two}`)).toEqual([ids[1]])
        const other = await subject.service.createAccount()
        expect(await listed(other.key, `browserContextId=${one}`)).toEqual([])
      })

      test('filters by any of several tags, with other filters', async () => {
        const account = await subject.service.createAccount()
        const queue = (tags: string) =>
          queueRun(subject.service, account, { query: tags, body: { variableData: { name: 'Ada' } } })
        const [one, two, three] = [await queue('tag=a&tag=x:1'), await queue(''), await queue('tag=b&tag=x:1')]
        await send(subject.service, 'cancelRun', account.key, { path: { runId: one } }).expect(200)
        const listed = async (query: string) => (await pages(subject, account.key, query)).flat()
        expect(await listed('tag=x:1&limit=1')).toEqual([three, one])
        expect(await listed('tag=b&tag=a')).toEqual([three, one])
        expect(await listed('tag=a&tag=b&status=cancelled&workflowId=greet')).toEqual([one])
        expect(await listed('tag=unknown')).toEqual([])
        expect(await listed('')).toEqual([three, two, one])
      })

      test('filters by reason, API key and a word of the error, in both orders', async () => {
        const account = await subject.service.createAccount()
        const { id: apiKeyId, value } = await account.createKey()
        const ids = [
          await queueRun(subject.service, account),
          await queueRun(subject.service, { ...account, key: value }),
        ]
        for (const runId of ids) await send(subject.service, 'cancelRun', account.key, { path: { runId } }).expect(200)
        const listed = async (query: string) => (await pages(subject, account.key, query)).flat()
        expect(await listed('reason=cancelRequested&order=newestFirst')).toEqual(ids.toReversed())
        expect(await listed('reason=cancelRequested&order=oldestFirst&limit=1')).toEqual(ids)
        expect(await listed('reason=timeLimit')).toEqual([])
        expect(await listed(`apiKeyId=${apiKeyId}`)).toEqual([ids[1]])
        expect(await listed('errorWord=ECONNREFUSED&status=failed')).toEqual([])
        const { body } = await subject.call(account.key, { query: `apiKeyId=${apiKeyId}` })
        expect(body.data[0].apiKeyId).toBe(apiKeyId)
      })

      test('filters by time: createdAfter is inclusive, createdBefore exclusive', async () => {
        const { account, ids } = await severalRuns(subject, 3)
        const { body } = await subject.call(account.key)
        const time: string = body.data[1].createdAt
        const createdAt = (id: string) => body.data.find((run: { id: string }) => run.id === id).createdAt
        const listed = async (query: string) => (await pages(subject, account.key, query)).flat()
        expect(await listed(`createdAfter=${time}`)).toEqual(ids.filter((id) => createdAt(id) >= time))
        expect(await listed(`createdBefore=${time}`)).toEqual(ids.filter((id) => createdAt(id) < time))
        expect(await listed(`createdAfter=${time}&createdBefore=${time}`)).toEqual([])
        expect(await listed('createdAfter=2999-01-01T00:00:00%2B01:00')).toEqual([])
        expect(await listed('createdBefore=1960-01-01T00:00:00Z')).toEqual([])
      })

      test('lists a run that waits by its status, with each filter', async () => {
        const { service } = subject
        const account = await service.createAccount()
        const query = 'tag=customer:42&delaySeconds=100'
        const runId = await queueRun(service, account, { query })
        const parent = await queueRun(service, account)
        const waiting = "status = 'waiting', waiting_for = 'answer', reason = 'waiting', delayed = 0"
        await service.change(`UPDATE runs SET ${waiting}, parent_run_id = ? WHERE id = ?`, parent, runId)
        const filters = ['workflowId=greet', 'tag=customer:42', 'reason=waiting', `parentRunId=${parent}`]
        const [{ apiKeyId }] = (await subject.call(account.key, { query: 'tag=customer:42' })).body.data
        for (const filter of [...filters, `apiKeyId=${apiKeyId}`]) {
          const { body } = await subject.call(account.key, { query: `status=waiting&${filter}` })
          const run = { id: runId, status: 'waiting', reason: 'waiting', waitingFor: 'answer', parentRunId: parent }
          expect(body.data.filter(({ id }: { id: string }) => id === runId)).toMatchObject([run])
          const others = await subject.call(account.key, { query: `status=queued&status=failed&${filter}` })
          expect(others.body.data.filter(({ id }: { id: string }) => id === runId)).toEqual([])
        }
      })
    },
    400(subject) {
      test('refuses to search lines of logs, which have no index, and names the parameter', async () => {
        const { key } = await subject.service.createAccount()
        const { body } = await subject.call(key, { query: 'logText=timeout' })
        expect(body.errors).toEqual([{ parameter: 'logText', detail: 'is not a parameter of this operation' }])
      })

      const notACursor = [{ parameter: 'cursor', detail: 'is not a cursor of this list' }]

      test('refuses a cursor with any character altered', async () => {
        const { account } = await severalRuns(subject, 2)
        // More requests than one key may make in a minute.
        const keys = await Promise.all(Array.from({ length: 3 }, () => account.createKey()))
        let sent = 0
        const list = (query: string) =>
          send(subject.service, 'listRuns', (keys[sent++ % keys.length] as TestKey).value, { query })
        const { nextCursor } = (await list('limit=1')).body
        const accepted: number[] = []
        for (let index = 0; index < nextCursor.length; index++) {
          // The neighbour in base64url; in the last character, it differs in bits that no byte uses.
          const changed = nextCursor[index] === 'A' ? 'B' : String.fromCharCode(nextCursor.charCodeAt(index) ^ 1)
          const response = await list(
            `limit=1&cursor=${nextCursor.slice(0, index)}${changed}${nextCursor.slice(index + 1)}`,
          )
          if (response.status !== 400) accepted.push(index)
        }
        expect(accepted).toEqual([])
        const response = await subject.call(account.key, { query: `limit=1&cursor=${nextCursor}A` })
        expect(response.body.errors).toEqual(notACursor)
      })

      test('refuses a cursor of another account', async () => {
        const { account } = await severalRuns(subject, 2)
        const { account: other } = await severalRuns(subject, 2)
        const { body } = await send(subject.service, 'listRuns', account.key, { query: 'limit=1' })
        const response = await subject.call(other.key, { query: `limit=1&cursor=${body.nextCursor}` })
        expect(response.body.errors).toEqual(notACursor)
      })

      test.each(['', 'status=queued', 'workflowId=hold', 'workflowId=greet&createdAfter=2020-01-01T00:00:00Z'])(
        'refuses a cursor with other filters (%s)',
        async (filters) => {
          const { account } = await severalRuns(subject, 2)
          const { body } = await send(subject.service, 'listRuns', account.key, { query: 'limit=1&workflowId=greet' })
          const response = await subject.call(account.key, { query: `${filters}&cursor=${body.nextCursor}` })
          expect(response.body.errors).toEqual(notACursor)
        },
      )

      test('refuses a cursor of another list', async () => {
        const { account } = await severalRuns(subject, 1)
        const { service } = subject
        for (const name of ['one', 'two']) {
          await send(service, 'createBrowserContext', account.key, { body: { name } }).expect(201)
        }
        const { body } = await send(service, 'listBrowserContexts', account.key, { query: 'limit=1' })
        const response = await subject.call(account.key, { query: `cursor=${body.nextCursor}` })
        expect(response.body.errors).toEqual(notACursor)
      })

      test('refuses filters that cannot be combined', async () => {
        const { key } = await subject.service.createAccount()
        const refusal = async (query: string) => (await subject.call(key, { query })).body.errors
        const id = crypto.randomUUID()
        expect(await refusal(`tag=a&browserContextId=${id}`)).toEqual([
          { parameter: 'tag', detail: 'cannot be combined with browserContextId' },
        ])
        expect(await refusal(`apiKeyId=${id}&workflowId=greet`)).toEqual([
          { parameter: 'apiKeyId', detail: 'cannot be combined with workflowId' },
        ])
        for (const word of ['two-words', 'two%20words']) {
          const detail = expect.stringMatching(/^must match pattern/)
          expect(await refusal(`errorWord=${word}`)).toEqual([{ parameter: 'errorWord', detail }])
        }
        // Punctuation of other scripts is not in the pattern.
        expect(await refusal('errorWord=%E3%80%82')).toEqual([
          { parameter: 'errorWord', detail: 'must be one word of letters, digits and _' },
        ])
      })

      test('refuses a limit out of bounds', async () => {
        const withLimit = (limit: number) => (request: { method: string; path: string; headers: object }) => ({
          ...request,
          headers: request.headers as Record<string, string>,
          path: `${request.path}?limit=${limit}`,
        })
        await expectInvalid(subject, withLimit(0), [{ parameter: 'limit', detail: 'must be >= 1' }])
        await expectInvalid(subject, withLimit(101), [{ parameter: 'limit', detail: 'must be <= 100' }])
      })
    },
  },
)
