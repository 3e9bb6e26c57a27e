/** The tab "Waiting": what runs wait for, and the pages on which users answer. Every user of the account may answer. */
import type { Answered, Wait, WaitFilter } from '../../../domain/run-api/waits.ts'
import type { WaitKind, WaitStatus } from '../../../storage/tables/run-tables.ts'
import type { Dependencies } from '../dependencies.ts'
import { elapsedSince, time } from '../format.ts'
import {
  backLink,
  badge,
  emptyState,
  type Fact,
  facts,
  type Html,
  heading,
  html,
  labelledField,
  nothing,
  notice,
  selectField,
  type Tone,
  table,
} from '../html.ts'
import { orNotFound, type Page, type PageHandler, type PageRequest } from '../page-handler.ts'
import { type QueuerLabel, readQueuerLabels, runLink, titleOf, waitPath } from '../runs/run-labels.ts'
import {
  type AnswerForm,
  newAnswerForm,
  parseAnswer,
  readAnswerForm,
  refuseAnswer,
  renderAnswerFields,
  renderShown,
} from './answer-form.ts'

const waitsPerPage = 50

const statuses: Record<WaitStatus, { title: string; tone: Tone }> = {
  open: { title: 'Waiting', tone: 'waiting' },
  completed: { title: 'Answered', tone: 'good' },
  timedOut: { title: 'Timed out', tone: 'bad' },
  cancelled: { title: 'Cancelled', tone: 'quiet' },
}

function isStatus(text: string): text is WaitStatus {
  return Object.hasOwn(statuses, text)
}

// The inbox

export const listWaits: PageHandler = async ({ account, query }, { waits, workflows }) => {
  const given = (name: string) => query.get(name) || undefined
  const status = given('status') ?? 'open'
  const filter: WaitFilter = {
    kind: 'answer',
    status: isStatus(status) ? status : 'open',
    workflowId: given('workflowId'),
    tag: given('tag'),
  }
  const cursor = given('cursor')
  const page = await waits.list(account.id, { ...filter, limit: waitsPerPage, cursor })
  // The cursor is invalid, for example because someone edited the address.
  if (!page) return { location: '/waits' }
  const titles = new Map(
    workflows
      .current(account.id)
      .list()
      .map(({ id, title }) => [id, title]),
  )
  const next = new URLSearchParams({ ...Object.fromEntries(query), cursor: page.nextCursor ?? '' })
  const body = html`${heading('Waiting', { lead: 'Runs that wait for an answer, the oldest question first.' })}
    ${renderFilters(filter, titles)} ${page.waits.length === 0 ? renderNone(filter) : renderList(page.waits, titles)}
    <p class="pages">${cursor === undefined ? nothing : html`<a href="/waits">← Oldest</a>`}
      ${page.nextCursor === null ? nothing : html`<a href="/waits?${next}">Newer →</a>`}</p>`
  return { title: 'Waiting', tab: 'waits', body }
}

function renderFilters({ workflowId = '', tag = '', status = 'open' }: WaitFilter, titles: Map<string, string>): Html {
  const workflows = [...titles].map(([value, title]) => ({ value, title }))
  const options = Object.entries(statuses).map(([value, { title }]) => ({ value, title }))
  return html`<form method="get" action="/waits" class="filters" data-submit-on-change>
    ${selectField({ name: 'status', label: 'Status', value: status, options })}
    ${selectField({ name: 'workflowId', label: 'Workflow', value: workflowId, options: [{ value: '', title: 'All workflows' }, ...workflows] })}
    ${labelledField({ name: 'tag', label: 'Tag' }, (common) => html`<input type="search" ${common} value="${tag}" placeholder="Tag" />`)}
    <div class="buttons"><button class="secondary">Apply</button></div>
  </form>`
}

function renderNone({ status }: WaitFilter): Html {
  const title = status === 'open' ? 'No run waits for an answer' : 'No results'
  return emptyState(title, html`<p>A workflow asks with <code>waitFor</code>. Each open question is listed here.</p>`)
}

function renderList(waits: readonly Wait[], titles: Map<string, string>): Html {
  const rows = waits.map((wait) => [
    html`<a href="${waitPath(wait)}">${titleOf(wait)}</a>`,
    html`<a href="/workflows/${wait.workflowId}">${titles.get(wait.workflowId) ?? wait.workflowId}</a>`,
    runLink(wait.runId),
    renderStatus(wait),
    wait.reachedAt === null ? html`<span class="muted">not reached</span>` : elapsedSince(wait.reachedAt),
    time(wait.deadline, 'relative', '–'),
  ])
  return table(['Question', 'Workflow', 'Run', 'Status', 'Waits for', 'Until'], rows, 'Questions of runs, oldest first')
}

function renderStatus({ status, kind }: Wait): Html {
  const { tone, title } = statuses[status]
  return badge(tone, kind !== 'answer' && status === 'completed' ? 'Ended' : title)
}

// A wait

interface WaitPage {
  wait: Wait
  content: Html | ''
  status?: number
}

async function findWait({ account, params }: PageRequest, { waits }: Dependencies): Promise<Wait> {
  return orNotFound(await waits.find(account.id, params.id ?? '', params.wait ?? ''))
}

export const showWait: PageHandler = async (request, deps) => {
  const wait = await findWait(request, deps)
  const isOpen = wait.declared !== undefined && wait.status === 'open'
  const isDone = request.query.get('done') === 'answered'
  const content = html`${isDone ? notice('good', 'Your answer is stored. The run goes on with it.') : nothing}
    ${isOpen ? renderForm(newAnswerForm(wait.declared?.schema ?? {})) : nothing}`
  return waitPage(request, deps, { wait, content })
}

export const answerWait: PageHandler = async (request, deps) => {
  const wait = await findWait(request, deps)
  const { account, actor } = request
  const form = readAnswerForm(wait.declared?.schema ?? {}, request.form)
  const parsed = parseAnswer(form)
  if ('invalid' in parsed) return waitPage(request, deps, { wait, content: renderForm(parsed.invalid), status: 400 })
  const answered = await deps.waits.answer(account.id, wait.runId, wait.name, parsed.value, actor)
  if ('wait' in answered) return { location: `${waitPath(wait)}?done=answered` }
  if (answered.kind === 'invalid') {
    const content = renderForm(refuseAnswer(form, answered.errors))
    return waitPage(request, deps, { wait, content, status: 400 })
  }
  const content = notice('bad', refusals[answered.kind])
  return waitPage(request, deps, { wait: await findWait(request, deps), content, status: 409 })
}

const refusals: Record<Exclude<Answered, { wait: Wait } | { kind: 'invalid' }>['kind'], string> = {
  noSuchRun: 'The run was deleted.',
  noSuchWait: 'The workflow of the run has no such question.',
  otherAnswer: 'Another answer was stored before. The first answer counts.',
  timedOut: 'The time for an answer is over.',
  ended: 'No answer is needed any more: the run has ended.',
}

function renderForm(form: AnswerForm): Html {
  return html`<form method="post" class="card"><h2>Answer</h2>${renderAnswerFields(form)}</form>`
}

async function waitPage(
  { account }: PageRequest,
  deps: Dependencies,
  { wait, content, status = 200 }: WaitPage,
): Promise<Page> {
  const label = await readQueuerLabels(deps, account.id)
  const title = titleOf(wait)
  const lead = wait.declared?.description ?? undefined
  const body = html`${backLink('/waits', 'Waiting')} ${heading(title, lead === undefined ? {} : { lead })}
    ${renderShown(wait.shown)} ${content}
    <section class="card" aria-label="Facts">${facts(waitFacts(wait, label))}</section>`
  return { title, tab: 'waits', body, status }
}

function waitFacts(wait: Wait, label: QueuerLabel): Fact[] {
  const { deadline, completedAt, completedBy, value, workflowId } = wait
  const facts: (Fact | false)[] = [
    ['Status', renderStatus(wait)],
    ['Run', runLink(wait.runId)],
    ['Workflow', html`<a href="/workflows/${workflowId}"><code>${workflowId}</code></a>`],
    ['Asked', time(wait.reachedAt, 'relative', 'The run has not asked yet.')],
    completedAt === null && deadline !== null && ['Until', time(deadline)],
    completedAt !== null && ['Ended', time(completedAt)],
    completedBy !== null && ['Answered by', renderAnswerer(completedBy, label)],
    value !== undefined && ['Answer', html`<code>${JSON.stringify(value)}</code>`],
  ]
  return facts.filter((fact) => fact !== false)
}

function renderAnswerer(by: NonNullable<Wait['completedBy']>, label: QueuerLabel): Html {
  if ('link' in by) return html`a person with a link`
  return label({ apiKeyId: 'apiKeyId' in by ? by.apiKeyId : null, userId: 'userId' in by ? by.userId : null })
}

// On the page of a run

const kindTitles: Record<WaitKind, string> = { sleep: 'a time', answer: 'an answer', run: 'a run' }

/** All waits of a run, with the runs that it has called. */
export function renderRunWaits(waits: readonly Wait[]): Html | '' {
  if (waits.length === 0) return nothing
  const rows = waits.map((wait) => [
    wait.kind === 'answer' ? html`<a href="${waitPath(wait)}">${titleOf(wait)}</a>` : html`${wait.name}`,
    wait.calledRunId === null ? kindTitles[wait.kind] : runLink(wait.calledRunId),
    renderStatus(wait),
    time(wait.reachedAt, 'relative', 'not reached'),
    time(wait.completedAt ?? wait.deadline, 'relative', '–'),
  ])
  return html`<section class="card" id="waits"><h2>Waits</h2>
    ${table(['Name', 'For', 'Status', 'Since', 'Until'], rows, 'What the run waits for')}</section>`
}
