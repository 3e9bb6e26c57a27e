/** Every list of runs that the document permits is read from the index that orders it. */
import { sql } from 'kysely'
import { describe, expect, test } from 'vitest'
import { findListErrors, type ListRequest, toRunFilter } from '../../src/domain/run-api/list-request.ts'
import { endOfIdValues, findByEndOfId, listQuery } from '../../src/storage/runs/run-list.ts'
import type { Store, Value } from '../../src/storage/store.ts'
import { newStoreLocation, openStore } from '../support/domain.ts'
import { stores } from '../support/store-kinds.ts'

const id = '0198f2c4-1a20-7b11-8c22-5d3e6f7a8b90'

/** By filter: the indexes of the runs of a status, without and with a workflow. */
const indexes: Record<string, { filter: Partial<ListRequest>; plain: string[]; ofWorkflow: string[] }> = {
  none: { filter: {}, plain: ['runs_finished_by_status'], ofWorkflow: ['runs_finished_by_workflow'] },
  tag: { filter: { tag: ['a'] }, plain: ['run_terms_key'], ofWorkflow: ['run_terms_key'] },
  'ten tags': { filter: { tag: [...'abcdefghij'] }, plain: ['run_terms_key'], ofWorkflow: ['run_terms_key'] },
  errorWord: { filter: { errorWord: 'timeout' }, plain: ['run_terms_key'], ofWorkflow: ['run_terms_key'] },
  reason: { filter: { reason: 'timeLimit' }, plain: ['runs_by_reason'], ofWorkflow: ['runs_by_reason_and_workflow'] },
  apiKeyId: { filter: { apiKeyId: id }, plain: ['runs_finished_by_key'], ofWorkflow: [] },
  browserContextId: {
    filter: { browserContextId: id },
    plain: ['runs_by_context'],
    ofWorkflow: ['runs_by_context_and_workflow'],
  },
}

/** Of the account's unfinished runs, which are limited. */
const unfinished = ['runs_queued', 'runs_leased']

const requests = Object.entries(indexes).flatMap(([name, { filter, plain, ofWorkflow }]) =>
  [undefined, 'newestFirst' as const, 'oldestFirst' as const].flatMap((order) => [
    { title: `${name}, ${order}`, request: { limit: 50, ...filter, order }, used: plain },
    {
      title: `${name}, a workflow, ${order}`,
      request: { limit: 50, ...filter, order, workflowId: 'w' },
      used: ofWorkflow,
    },
  ]),
)

/** The index of each access of a table, `SCAN` for one without. The look-up of a run by its id is `id`. */
async function explain(store: Store, kind: string, list: { sql: string }, values: readonly Value[]): Promise<string[]> {
  if (kind === 'sqlite') {
    const rows = await store.read.all<{ detail: string }>(`EXPLAIN QUERY PLAN ${list.sql}`, values)
    return rows.flatMap(({ detail }) => {
      const [, how, table, index] =
        /^(SEARCH|SCAN) (runs|run_terms)(?: USING (?:COVERING )?(INDEX \S+|PRIMARY KEY))?/.exec(detail) ?? []
      if (how === undefined) return []
      // The index of all running runs is small, and may be read as a whole.
      if (index === undefined || (how === 'SCAN' && index !== 'INDEX runs_leased')) return 'SCAN'
      if (/\(id=\?\)/.test(detail)) return 'id'
      return index === 'PRIMARY KEY' ? `${table}_key` : index.replace('INDEX ', '')
    })
  }
  return store.write(async ({ query }) => {
    let count = 0
    const text = list.sql.replaceAll('?', () => `$${++count}`)
    await sql.raw(`PREPARE explained AS ${text}`).execute(query)
    const literals = values.map((value) => `'${value}'`).join(', ')
    const { rows } = await sql.raw<{ 'QUERY PLAN': string }>(`EXPLAIN EXECUTE explained (${literals})`).execute(query)
    await sql.raw('DEALLOCATE explained').execute(query)
    return rows.flatMap(({ 'QUERY PLAN': line }) => {
      const [, how, index = ''] =
        /(Seq|Bitmap Heap|Index(?: Only)?) Scan(?: Backward)?(?: using (\S+))? on /.exec(line) ?? []
      if (how === undefined) return []
      if (!how.startsWith('Index')) return 'SCAN'
      return index === 'runs_pkey' ? 'id' : index
    })
  })
}

describe.each(stores)('the plan of a list ($name)', (kind) => {
  test('uses the index of its filter for each status, in both orders', async (test) => {
    const store = await openStore(test, await newStoreLocation(test, kind), kind)
    const found: Record<string, string[]> = {}
    const expected: Record<string, string[]> = {}
    for (const { title, request, used } of requests) {
      if (findListErrors(request).length > 0) continue
      const filter = toRunFilter(request, undefined)
      const { list, values } = listQuery(id, filter, 51)
      const plan = await explain(store, kind.name, list, values)
      // One look-up by id, for the page.
      found[title] = [...new Set(plan.filter((index) => !unfinished.includes(index)))].sort()
      expected[title] = [...used, 'id'].sort()
      expect(
        plan.filter((index) => index === 'id'),
        title,
      ).toHaveLength(1)
      const page = listQuery(id, filter, 51, { join: store.read.statements.joinSmallRuns, bytesMax: 1 })
      const planOfPage = await explain(store, kind.name, page.list, page.values)
      // A second look-up by id, for the rows of the page.
      expect(planOfPage.filter((index) => index !== 'artifacts_key').sort(), title).toEqual([...plan, 'id'].sort())
    }
    expect(found).toEqual(expected)
  })

  test('of ids with an end reads the newest entries of the same indexes', async (test) => {
    const store = await openStore(test, await newStoreLocation(test, kind), kind)
    const plan = await explain(store, kind.name, findByEndOfId, endOfIdValues(id, '6f7a8b90'))
    expect([...new Set(plan)].sort()).toEqual(['runs_finished_by_status', ...unfinished].sort())
  })
})

test('filters that no index answers together are refused, with the names of both parameters', () => {
  const names = ['browserContextId', 'tag', 'reason', 'apiKeyId', 'errorWord'] as const
  const filters = Object.assign({}, ...Object.values(indexes).map(({ filter }) => filter)) as Required<ListRequest>
  for (const [index, first] of names.entries()) {
    for (const second of names.slice(index + 1)) {
      const request = { limit: 1, [first]: filters[first], [second]: filters[second] }
      expect(findListErrors(request)).toEqual([{ parameter: second, detail: `cannot be combined with ${first}` }])
    }
  }
  expect(findListErrors({ limit: 1, apiKeyId: id, workflowId: 'w' })).toEqual([
    { parameter: 'apiKeyId', detail: 'cannot be combined with workflowId' },
  ])
  for (const errorWord of ['two words', 'a-b', '...', ' timeout']) {
    expect(findListErrors({ limit: 1, errorWord })).toEqual([
      { parameter: 'errorWord', detail: 'must be one word of letters, digits and _' },
    ])
  }
  expect(findListErrors({ limit: 1, errorWord: 'ERR_NAME_2' })).toEqual([])
})
