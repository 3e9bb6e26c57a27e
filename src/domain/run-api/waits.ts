/** What runs wait for, as callers and people see it: lists, answers, and links at which a person answers. */

import { randomBytes } from 'node:crypto'
import { type SelectQueryBuilder, sql } from 'kysely'
import { v7 as uuid } from 'uuid'
import type { Cursors, PageRequest } from '../../storage/cursors.ts'
import type { Encryption } from '../../storage/encryption.ts'
import { boundPage } from '../../storage/purge-target.ts'
import { readColumns } from '../../storage/runs/run-lookups.ts'
import { tagTerm } from '../../storage/runs/run-terms.ts'
import { type CallingRun, calledMax, findCallers, findWaits, ofVisibleRun } from '../../storage/runs/wait-statements.ts'
import type { Store, Transaction } from '../../storage/store.ts'
import type { RunsTable, RunWaitsTable, WaitKind, WaitLinksTable, WaitStatus } from '../../storage/tables/run-tables.ts'
import type { Tables } from '../../storage/tables/tables.ts'
import { findUserRow } from '../accounts/accounts.sql.ts'
import { includesRole, permitsScope, toRole } from '../accounts/roles.ts'
import { hashToken } from '../accounts/sessions.ts'
import { findById } from '../api-keys/api-keys.sql.ts'
import { type Actor, type ApiKeyUse, recordAudit, toActor } from '../audit-log/audit-log.ts'
import { canonicalJson } from '../canonical-json.ts'
import type { WorkflowRegistry } from '../deployments/deployments.ts'

import { findRun, lockRun } from '../queue/runs.sql.ts'
import { type AnswerResult, answerWait, type CompletedBy } from '../queue/waits.ts'
import { type Run, waitAad } from '../runs/run.ts'
import type { RunStatus } from '../runs/run-state.ts'
import type { Sized } from '../sized.ts'
import { type DeclaredWait, declaredWait } from '../workflows/workflow.ts'
import type { VariableError, Workflows } from '../workflows/workflows.ts'

/** A wait as it is shown. Times are milliseconds since 1970. */
export interface Wait {
  id: string
  runId: string
  workflowId: string
  name: string
  kind: WaitKind
  status: WaitStatus
  title: string | null
  /** How the workflow declares the answer, in the deployment of the run. */
  declared: DeclaredWait | undefined
  shown: Record<string, unknown> | null
  /** `null` if the answer has come before the run reached the wait. */
  reachedAt: number | null
  deadline: number | null
  completedAt: number | null
  completedBy: CompletedBy | null
  /** The API key or the user that created the link of the answer. */
  linkCreator: { apiKeyId: string | null; userId: string | null } | null
  /** `undefined` without an answer. */
  value: unknown
  calledRunId: string | null
}

export interface WaitFilter {
  workflowId?: string | undefined
  name?: string | undefined
  kind?: WaitKind | undefined
  status?: WaitStatus | undefined
  tag?: string | undefined
}

/** `apiKeyId` of a caller, a user of the dashboard, or the id of a link, with the address of the client. */
export type Answerer = (ApiKeyUse | Actor | { link: string }) & { address: string | null }

/** With a wrong number of proxies, clients choose what they report as their address. */
const addressLengthMax = 100

export type Answered =
  | { kind: 'answered' | 'repeated'; wait: Wait }
  | { kind: 'invalid'; errors: VariableError[] }
  | { kind: 'noSuchRun' | 'noSuchWait' | 'otherAnswer' | 'timedOut' | 'ended' }

/** A link, with the wait that it is for and why it no longer takes an answer. */
export interface OpenedLink {
  id: string
  accountId: string
  expiresAt: number
  wait: Wait
  state: 'open' | 'used' | 'expired' | 'otherAnswer' | 'timedOut' | 'ended'
}

/** A run that has called runs or was called, in the tree of those that the account sees. */
export interface CallTreeRun {
  id: string
  workflowId: string
  status: RunStatus
  waitingFor: WaitKind | null
  cancelRequested: boolean
  startedAt: number | null
  finishedAt: number | null
  /** The runs that it has called, oldest first. Of the runs above, only the one that leads to the run. */
  called: CallTreeRun[]
}

export interface CallTree {
  /** Nothing has called it, or its caller was deleted. */
  root: CallTreeRun
  /** The caller of the root, if it was deleted. */
  deletedCallerId: string | null
  /** Whether the run has called more runs, directly or not, than the tree has. */
  hasMore: boolean
}

type WaitPage = Sized<Wait[]> & { nextCursor: string | null }

const ownBytes = sql<number>`coalesce(octet_length(title), 0) + coalesce(octet_length(shown), 0)
  + coalesce(octet_length(value), 0)`.as('own_bytes')

const bytesOfSchemas = new WeakMap<object, number>()

/** Bytes of what the workflow declares, which each of its waits repeats. */
function schemaBytes(
  workflows: Workflows | undefined,
  row: Pick<RunWaitsTable, 'workflow_id' | 'name' | 'kind'>,
): number {
  const declared = row.kind === 'answer' ? declaredWait(workflows?.get(row.workflow_id), row.name) : undefined
  if (!declared) return 0
  const known = bytesOfSchemas.get(declared)
  const bytes = known ?? Buffer.byteLength(JSON.stringify(declared))
  if (known === undefined) bytesOfSchemas.set(declared, bytes)
  return bytes
}

interface Dependencies {
  store: Store
  encryption: Encryption
  cursors: Cursors
  workflows: WorkflowRegistry
}

export class Waits {
  readonly #dependencies: Dependencies
  readonly #now: () => number

  constructor(dependencies: Dependencies, now: () => number = Date.now) {
    this.#dependencies = dependencies
    this.#now = now
  }

  /** See `findPage`. */
  async list(accountId: string, request: PageRequest & WaitFilter) {
    const page = await this.findPage(accountId, request)
    return page && { waits: await page.read(), nextCursor: page.nextCursor }
  }

  /** A page of the account's waits to read, oldest first; `undefined` for a cursor of another list. */
  async findPage(accountId: string, request: PageRequest & WaitFilter): Promise<WaitPage | undefined> {
    const { store } = this.#dependencies
    const { workflowId, name, kind, status, tag } = request
    const { query } = store.read
    let all = query.selectFrom('run_waits').selectAll().where('account_id', '=', accountId).where(ofVisibleRun)
    if (workflowId !== undefined) all = all.where('workflow_id', '=', workflowId)
    if (name !== undefined) all = all.where('name', '=', name)
    if (kind !== undefined) all = all.where('kind', '=', kind)
    if (status !== undefined) all = all.where('status', '=', status)
    if (tag !== undefined) {
      const tagged = query.selectFrom('run_terms').select('run_id').where('account_id', '=', accountId)
      all = all.where('run_id', 'in', tagged.where('term', '=', tagTerm(tag)).where('scope', '=', ''))
    }
    return this.#findPage(['waits', accountId, workflowId, name, kind, status, tag], request, all)
  }

  /** A page of a run's waits to read, oldest first; `undefined` if the account has no such run. */
  async findPageOfRun(
    accountId: string,
    runId: string,
    request: PageRequest,
  ): Promise<WaitPage | 'wrongCursor' | undefined> {
    const { store } = this.#dependencies
    const run = await findRun(store.read, accountId, runId)
    if (!run) return undefined
    const all = store.read.query.selectFrom('run_waits').selectAll().where('run_id', '=', run.id)
    return (await this.#findPage(['waits', accountId, run.id], request, all)) ?? 'wrongCursor'
  }

  /** It has fewer than `limit` when their values and schemas would be larger than a page may be. */
  async #findPage(
    list: readonly unknown[],
    request: PageRequest,
    all: SelectQueryBuilder<Tables, 'run_waits', RunWaitsTable>,
  ): Promise<WaitPage | undefined> {
    const findSizes = async (after: string | undefined, limit: number) => {
      const rows = after === undefined ? all : all.where('id', '>', after)
      const sizes = rows.clearSelect().select(['id', 'run_id', 'workflow_id', 'name', 'kind', ownBytes])
      const found = await sizes.orderBy('id').limit(limit).execute()
      const definitions = await this.#readDefinitions(found)
      return found.map((row) => ({
        id: row.id,
        size_bytes: row.own_bytes + schemaBytes(definitions.get(row.run_id), row),
      }))
    }
    const page = await this.#dependencies.cursors.page(list, request, findSizes, { bound: boundPage })
    if (!page) return undefined
    const ids = page.rows.map(({ id }) => id)
    return {
      nextCursor: page.nextCursor,
      sizeBytes: page.rows.reduce((sum, { size_bytes }) => sum + size_bytes, 0),
      forget() {},
      read: async () =>
        ids.length === 0 ? [] : this.#toWaits(await all.where('id', 'in', ids).orderBy('id').execute()),
    }
  }

  /**
   * What a run waits for, questions first, and then the latest waits that have ended: together at most `max`, oldest
   * first.
   *
   * @param run of the account that asks.
   */
  async latestOfRun({ id }: Pick<Run, 'id'>, max: number): Promise<Wait[]> {
    const { query } = this.#dependencies.store.read
    const ofRun = query.selectFrom('run_waits').selectAll().where('run_id', '=', id)
    const open = ofRun.where('status', '=', 'open').orderBy('id')
    const parts = [
      open.where('kind', '=', 'answer'),
      open.where('kind', '<>', 'answer'),
      ofRun.where('status', '<>', 'open').orderBy('id', 'desc'),
    ]
    const rows: RunWaitsTable[] = []
    for (const part of parts) if (rows.length < max) rows.push(...(await part.limit(max - rows.length).execute()))
    return this.#toWaits(rows.sort((a, b) => (a.id < b.id ? -1 : 1)))
  }

  /** The runs above and below a run; `undefined` if it was not called and has called none. */
  async callTree({ id, parentRunId }: Pick<Run, 'id' | 'parentRunId'>): Promise<CallTree | undefined> {
    const { read } = this.#dependencies.store
    // The run itself, and one more than is shown.
    const [self, ...below] = await read.all(read.statements.findCalled, [id, calledMax + 2])
    if (!self || (parentRunId === null && below.length === 0)) return undefined
    const above = parentRunId === null ? [] : (await read.all(findCallers, [id])).slice(1)
    const rows = [...above.toReversed(), self, ...below.slice(0, calledMax)]
    const runs = new Map(rows.map((row) => [row.id, toCallTreeRun(row)]))
    for (const row of rows.toSorted((a, b) => (a.id < b.id ? -1 : 1)))
      runs.get(row.parent_run_id ?? '')?.called.push(runs.get(row.id) as CallTreeRun)
    const [first] = rows as [CallingRun]
    const root = runs.get(first.id) as CallTreeRun
    return { root, deletedCallerId: first.parent_run_id, hasMore: below.length > calledMax }
  }

  /** A wait that the run has reached or that has its answer, or else one that its workflow declares. */
  async find(accountId: string, runId: string, name: string): Promise<Wait | undefined> {
    const { read } = this.#dependencies.store
    const run = await findRun(read, accountId, runId)
    if (!run) return undefined
    const row = (await findWaits(read, run.id, [name])).get(name)
    if (row) return (await this.#toWaits([row]))[0]
    const declared = declaredWait((await this.#workflowsOf(run)).get(run.workflow_id), name)
    return declared && run.finished_at === null ? toUnreached(run, name, declared) : undefined
  }

  /**
   * Answers a wait that the workflow of the run declares, whether the run has reached it or not.
   *
   * @param within writes in the same transaction, if the answer is the first.
   */
  async answer(
    accountId: string,
    runId: string,
    name: string,
    value: unknown,
    by: Answerer,
    within?: (tx: Transaction) => Promise<void>,
  ): Promise<Answered> {
    const { store, encryption } = this.#dependencies
    const run = await findRun(store.read, accountId, runId)
    if (!run) return { kind: 'noSuchRun' }
    const workflows = await this.#workflowsOf(run)
    const checked = workflows.checkAnswer(run.workflow_id, name, value)
    if (!checked) return { kind: 'noSuchWait' }
    if ('errors' in checked) return { kind: 'invalid', errors: checked.errors }
    const completedBy = toCompletedBy(by)
    const { address } = completedBy
    const answer = { name, value: canonicalJson(checked.value), by: completedBy }
    const answered = await store.write(async (tx): Promise<AnswerResult | undefined> => {
      const row = await lockRun(tx, accountId, run.id)
      if (!row) return undefined
      const result = await answerWait(tx, encryption, row, answer, this.#now())
      if (result.kind !== 'answered') return result
      await within?.(tx)
      const actor: Actor = 'link' in by ? { kind: 'caller', id: by.link, name: 'link' } : await toActor(tx, by)
      const subject = { id: run.id, name: run.workflow_id }
      const details = { wait: name, address }
      await recordAudit(tx, accountId, { action: 'wait.answered', by: actor, subject, details })
      return result
    })
    if (!answered) return { kind: 'noSuchRun' }
    if (answered.kind === 'answered') {
      store.notify('queue')
      store.notify('runs')
    }
    if (answered.kind === 'noAnswer') return { kind: 'noSuchWait' }
    if (answered.kind !== 'answered' && answered.kind !== 'repeated') return { kind: answered.kind }
    const [wait] = await this.#toWaits([answered.wait as RunWaitsTable])
    return { kind: answered.kind, wait: wait as Wait }
  }

  // Links

  /** The token is stored as its hash only. */
  async createLink(
    accountId: string,
    runId: string,
    name: string,
    expiresInSeconds: number,
    by: ApiKeyUse | Actor,
  ): Promise<{ token: string; expiresAt: number } | { kind: 'noSuchRun' | 'noSuchWait' | 'ended' | 'otherAnswer' }> {
    const { store } = this.#dependencies
    const run = await findRun(store.read, accountId, runId)
    if (!run) return { kind: 'noSuchRun' }
    if (!declaredWait((await this.#workflowsOf(run)).get(run.workflow_id), name)) return { kind: 'noSuchWait' }
    const token = randomBytes(32).toString('base64url')
    const now = this.#now()
    const expiresAt = now + expiresInSeconds * 1000
    const creator = 'apiKeyId' in by ? { api_key_id: by.apiKeyId, user_id: null } : { api_key_id: null, user_id: by.id }
    const link = { id: uuid(), account_id: accountId, run_id: run.id, name, created_at: now, expires_at: expiresAt }
    return store.write(async (tx) => {
      const row = await lockRun(tx, accountId, run.id)
      if (!row) return { kind: 'noSuchRun' as const }
      const wait = (await findWaits(tx, run.id, [name])).get(name)
      if (wait?.status === 'completed') return { kind: 'otherAnswer' as const }
      if (row.finished_at !== null || (wait && wait.status !== 'open')) return { kind: 'ended' as const }
      const values = { ...link, ...creator, hash: hashToken(token), used_at: null }
      await tx.query.insertInto('wait_links').values(values).execute()
      const subject = { id: run.id, name: run.workflow_id }
      const entry = { action: 'wait.linkCreated', by: await toActor(tx, by), subject, details: { wait: name } } as const
      await recordAudit(tx, accountId, entry)
      return { token, expiresAt }
    })
  }

  /** Whether links that this caller creates work. */
  mayAnswer({ apiKeyId }: ApiKeyUse): Promise<boolean> {
    return mayCreatorAnswer(this.#dependencies.store.read, { api_key_id: apiKeyId, user_id: null })
  }

  /**
   * The wait that a link is for; `undefined` if there is no such link. Changes nothing. If the run has not reached the wait,
   * the link shows what is declared.
   */
  async openLink(token: string): Promise<OpenedLink | undefined> {
    const { read } = this.#dependencies.store
    const links = read.query.selectFrom('wait_links').selectAll().where('hash', '=', hashToken(token))
    const link = await links.executeTakeFirst()
    const run = link && (await findRun(read, link.account_id, link.run_id))
    const declared = run && declaredWait((await this.#workflowsOf(run)).get(run.workflow_id), link.name)
    if (!declared) return undefined
    const wait = (await this.find(link.account_id, run.id, link.name)) ?? toUnreached(run, link.name, declared)
    const state = this.#stateOf(link, wait, run.finished_at !== null)
    const isRevoked = state === 'open' && !(await mayCreatorAnswer(read, link))
    const opened = { id: link.id, accountId: link.account_id, expiresAt: link.expires_at, wait }
    return { ...opened, state: isRevoked ? 'expired' : state }
  }

  #stateOf(link: WaitLinksTable, { status, completedBy }: Wait, hasEnded: boolean): OpenedLink['state'] {
    if (status === 'completed')
      return completedBy && 'link' in completedBy && completedBy.link === link.id ? 'used' : 'otherAnswer'
    if (status !== 'open') return status === 'timedOut' ? 'timedOut' : 'ended'
    if (hasEnded) return 'ended'
    return link.expires_at <= this.#now() ? 'expired' : 'open'
  }

  /** Answers by an open link, which no longer works afterwards. The same answer again, as by a second click, is repeated. */
  answerByLink({ id, accountId, wait }: OpenedLink, value: unknown, address: string | null): Promise<Answered> {
    return this.answer(accountId, wait.runId, wait.name, value, { link: id, address }, async (tx) => {
      await tx.query.updateTable('wait_links').set({ used_at: this.#now() }).where('id', '=', id).execute()
    })
  }

  async #workflowsOf({ account_id, deployment_id }: Pick<RunsTable, 'account_id' | 'deployment_id'>) {
    const { workflows } = this.#dependencies
    if (deployment_id === null) return workflows.current(account_id)
    return (await workflows.findWorkflows?.(deployment_id)) ?? workflows.current(account_id)
  }

  async #toWaits(rows: readonly RunWaitsTable[]): Promise<Wait[]> {
    const { encryption } = this.#dependencies
    const definitions = await this.#readDefinitions(rows)
    const creators = await this.#readLinkCreators(rows)
    return rows.map((row) => {
      const workflow = definitions.get(row.run_id)?.get(row.workflow_id)
      const declared = row.kind === 'answer' ? declaredWait(workflow, row.name) : undefined
      const completedBy: CompletedBy | null = row.completed_by === null ? null : JSON.parse(row.completed_by)
      const linkCreator = (completedBy && 'link' in completedBy && creators.get(completedBy.link)) || null
      const by = { completedBy, linkCreator }
      if (row.value === null) return toWait(row, declared, by, undefined)
      const value = JSON.parse(encryption.decrypt(row.value, waitAad(row.run_id, row.name)))
      // Without its schema, nothing says what is a secret.
      const checked = definitions.get(row.run_id)?.checkAnswer(row.workflow_id, row.name, value)
      return toWait(row, declared, by, checked && 'masked' in checked ? checked.masked : null)
    })
  }

  /** By run. */
  async #readDefinitions(rows: readonly Pick<RunWaitsTable, 'run_id'>[]): Promise<Map<string, Workflows>> {
    const ids = [...new Set(rows.map(({ run_id }) => run_id))]
    const columns = await readColumns(this.#dependencies.store.read, ['id', 'account_id', 'deployment_id'], ids)
    const definitions = new Map<string, Workflows>()
    for (const run of columns) definitions.set(run.id, await this.#workflowsOf(run))
    return definitions
  }

  async #readLinkCreators(rows: readonly RunWaitsTable[]): Promise<Map<string, NonNullable<Wait['linkCreator']>>> {
    const links = rows.flatMap(({ completed_by }) => JSON.parse(completed_by ?? '{}').link ?? [])
    if (links.length === 0) return new Map()
    const { query } = this.#dependencies.store.read
    const found = query.selectFrom('wait_links').select(['id', 'api_key_id', 'user_id']).where('id', 'in', links)
    const creators = await found.execute()
    return new Map(creators.map(({ id, api_key_id, user_id }) => [id, { apiKeyId: api_key_id, userId: user_id }]))
  }
}

/** Whether the creator's key is not deleted and has the scope and, as of a member, the role permits it. */
async function mayCreatorAnswer(
  tx: Transaction,
  { api_key_id, user_id }: Pick<WaitLinksTable, 'api_key_id' | 'user_id'>,
): Promise<boolean> {
  if (api_key_id !== null) {
    const key = await findById(tx, api_key_id)
    const role = toRole(key?.role)
    const scopes: string[] | null = key?.scopes ? JSON.parse(key.scopes) : null
    return role !== undefined && permitsScope(role, 'waits:write') && (scopes?.includes('waits:write') ?? true)
  }
  return includesRole(toRole((await findUserRow(tx, user_id ?? ''))?.role) ?? null, 'operator')
}

function toCompletedBy(by: Answerer): CompletedBy {
  const address = by.address?.slice(0, addressLengthMax) ?? null
  if ('apiKeyId' in by) return { apiKeyId: by.apiKeyId, address }
  return 'link' in by ? { link: by.link, address } : { userId: by.id ?? '', address }
}

function toWait(
  row: RunWaitsTable,
  declared: DeclaredWait | undefined,
  by: Pick<Wait, 'completedBy' | 'linkCreator'>,
  value: unknown,
): Wait {
  return {
    id: row.id,
    runId: row.run_id,
    workflowId: row.workflow_id,
    name: row.name,
    kind: row.kind,
    status: row.status,
    title: row.title ?? declared?.title ?? null,
    declared,
    shown: row.shown === null ? null : JSON.parse(row.shown),
    reachedAt: row.reached_at,
    deadline: row.deadline,
    completedAt: row.completed_at,
    ...by,
    value,
    calledRunId: row.child_run_id,
  }
}

function toCallTreeRun(row: CallingRun): CallTreeRun {
  const { id, workflow_id: workflowId, status, waiting_for, started_at: startedAt, finished_at: finishedAt } = row
  const waitingFor = status === 'waiting' ? (waiting_for as WaitKind) : null
  const cancelRequested = row.cancel_requested === 1
  return { id, workflowId, status: status as RunStatus, waitingFor, cancelRequested, startedAt, finishedAt, called: [] }
}

function toUnreached({ id: runId, workflow_id }: RunsTable, name: string, declared: DeclaredWait): Wait {
  const { title } = declared
  const times = { reachedAt: null, deadline: null, completedAt: null, completedBy: null, linkCreator: null }
  const wait = {
    id: runId,
    runId,
    workflowId: workflow_id,
    name,
    kind: 'answer',
    status: 'open',
    title,
    declared,
  } as const
  return { ...wait, ...times, shown: null, value: undefined, calledRunId: null }
}
