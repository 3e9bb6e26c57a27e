/** The tab "Waiting": what runs wait for, and the pages on which users answer. */
import type { Answered, CallTree, CallTreeRun, Wait, WaitFilter } from '../../../domain/run-api/waits.ts'
import type { Workflow } from '../../../domain/workflows/workflow.ts'
import type { Workflows } from '../../../domain/workflows/workflows.ts'
import type { WaitKind, WaitStatus } from '../../../storage/tables/run-tables.ts'
import type { Dependencies } from '../dependencies.ts'
import { elapsedSince, formatDuration, time } from '../format.ts'
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
import { may } from '../page-roles.ts'
import {
  type QueuerLabel,
  readQueuerLabels,
  renderRunDuration,
  runBadge,
  runLink,
  shortId,
  titleOf,
  waitPath,
} from '../runs/run-labels.ts'
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

export const listWaits: PageHandler = async ({ account, query }, deps) => {
  const given = (name: string) => query.get(name) || undefined
  const [status = 'open', kind = 'answer'] = [given('status'), given('kind')]
  const filter: WaitFilter = {
    kind: isKind(kind) ? kind : 'answer',
    status: isStatus(status) ? status : 'open',
    workflowId: given('workflowId'),
    name: given('name'),
    tag: given('tag'),
  }
  const cursor = given('cursor')
  const page = await deps.waits.list(account.id, { ...filter, limit: waitsPerPage, cursor })
  // The cursor is invalid, for example because someone edited the address.
  if (!page) return { location: '/waits' }
  const workflows = deps.workflows.current(account.id).list()
  const next = new URLSearchParams({ ...Object.fromEntries(query), cursor: page.nextCursor ?? '' })
  const label = await readQueuerLabels(deps, account.id)
  const list = page.waits.length === 0 ? renderNone(filter) : renderList(page.waits, workflows, filter, label)
  const body = html`${heading('Waiting', { lead: leads[filter.kind ?? 'answer'] })}
    ${renderFilters(filter, workflows)} ${list}
    <p class="pages">${cursor === undefined ? nothing : html`<a href="/waits">← Oldest</a>`}
      ${page.nextCursor === null ? nothing : html`<a href="/waits?${next}">Newer →</a>`}</p>`
  return { title: 'Waiting', tab: 'waits', body }
}

const kinds: Record<WaitKind, string> = { answer: 'Answer', run: 'Called run', sleep: 'Time' }

function isKind(text: string): text is WaitKind {
  return Object.hasOwn(kinds, text)
}

const leads: Record<WaitKind, string> = {
  answer: 'Runs that wait for an answer, the oldest question first.',
  run: 'Runs that wait for a run that they have called, the oldest call first.',
  sleep: 'Runs that wait for a time, the oldest wait first.',
}

function renderFilters(filter: WaitFilter, workflows: readonly Workflow[]): Html {
  const { workflowId = '', name = '', tag = '', status = 'open', kind = 'answer' } = filter
  const toOptions = (titles: Record<string, string>) =>
    Object.entries(titles).map(([value, title]) => ({ value, title }))
  const ofStatus = Object.fromEntries(Object.entries(statuses).map(([value, { title }]) => [value, title]))
  const ofWorkflow = workflows.map(({ id, title }) => ({ value: id, title }))
  const names = [...new Set(workflows.flatMap(({ waits = {} }) => Object.keys(waits)))].sort()
  const text = (field: string, label: string, value: string, list: Html | '' = nothing) =>
    labelledField({ name: field, label }, (common) => {
      return html`<input type="search" ${common} value="${value}" placeholder="${label}" ${list} />`
    })
  return html`<form method="get" action="/waits" class="filters" data-submit-on-change>
    ${selectField({ name: 'status', label: 'Status', value: status, options: toOptions(ofStatus) })}
    ${selectField({ name: 'kind', label: 'Waits for', value: kind, options: toOptions(kinds) })}
    ${selectField({ name: 'workflowId', label: 'Workflow', value: workflowId, options: [{ value: '', title: 'All workflows' }, ...ofWorkflow] })}
    ${text('name', 'Name', name, html`list="wait-names"`)} ${text('tag', 'Tag', tag)}
    <datalist id="wait-names">${names.map((each) => html`<option value="${each}"></option>`)}</datalist>
    <div class="buttons"><button class="secondary">Apply</button></div>
  </form>`
}

function renderNone({ status, kind }: WaitFilter): Html {
  if (status !== 'open' || kind !== 'answer')
    return emptyState('No results', html`<p>No wait matches these filters.</p>`)
  return emptyState(
    'No run waits for an answer',
    html`<p>A workflow asks with <code>waitFor</code>. Each open question is listed here.</p>`,
  )
}

function renderList(
  waits: readonly Wait[],
  workflows: readonly Workflow[],
  filter: WaitFilter,
  label: QueuerLabel,
): Html {
  const titles = new Map(workflows.map(({ id, title }) => [id, title]))
  const isOpen = filter.status === 'open'
  const rows = waits.map((wait) => [
    renderName(wait),
    html`<a href="/workflows/${wait.workflowId}">${titles.get(wait.workflowId) ?? wait.workflowId}</a>`,
    runLink(wait.runId),
    renderStatus(wait),
    renderAge(wait),
    ...(isOpen ? [time(wait.deadline, 'relative', '–')] : [time(wait.completedAt), renderAnswerer(wait, label)]),
  ])
  const name = filter.kind === 'answer' ? 'Question' : 'Name'
  const columns = [name, 'Workflow', 'Run', 'Status', ...(isOpen ? ['Age', 'Until'] : ['Waited', 'Ended', 'By'])]
  return table(columns, rows, 'Waits of runs, oldest first')
}

function nameOf(wait: Wait): string {
  return wait.kind === 'answer' ? titleOf(wait) : wait.name
}

const shownAnswerMax = 200

/** A link to the page of the wait, and the answer if it has come: of a long one, the beginning. */
function renderName(wait: Wait): Html {
  const link = html`<a href="${waitPath(wait)}">${nameOf(wait)}</a>`
  if (wait.value === undefined) return link
  const answer = JSON.stringify(wait.value)
  const shown = answer.length > shownAnswerMax ? `${answer.slice(0, shownAnswerMax)}…` : answer
  return html`<span class="answered">${link}<br /><code>${shown}</code></span>`
}

/** How long the run has waited, which the browser keeps counting while the wait is open. */
function renderAge({ reachedAt, completedAt }: Wait): Html | string {
  if (reachedAt === null) return html`<span class="muted">not reached</span>`
  return completedAt === null ? elapsedSince(reachedAt) : formatDuration(completedAt - reachedAt)
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
    ${isOpen ? renderAnswering(request, wait) : nothing}`
  return waitPage(request, deps, { wait, content })
}

function renderAnswering({ user }: PageRequest, { declared }: Wait): Html {
  if (may(user, 'POST /runs/:id/waits/:wait')) return renderForm(newAnswerForm(declared?.schema ?? {}))
  return notice('quiet', `The role operator can answer. Your role is ${user.role}.`)
}

export const answerWait: PageHandler = async (request, deps) => {
  const wait = await findWait(request, deps)
  const { account, actor, address } = request
  const by = { ...actor, address: address || null }
  const form = readAnswerForm(wait.declared?.schema ?? {}, request.form)
  const parsed = parseAnswer(form)
  if ('invalid' in parsed) return waitPage(request, deps, { wait, content: renderForm(parsed.invalid), status: 400 })
  const answered = await deps.waits.answer(account.id, wait.runId, wait.name, parsed.value, by)
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
  const { kind, deadline, reachedAt, completedAt, completedBy, value, workflowId, calledRunId } = wait
  const facts: (Fact | false)[] = [
    ['Status', renderStatus(wait)],
    ['Run', runLink(wait.runId)],
    ['Workflow', html`<a href="/workflows/${workflowId}"><code>${workflowId}</code></a>`],
    kind !== 'answer' && ['Waits for', calledRunId === null ? kinds[kind] : runLink(calledRunId)],
    [kind === 'answer' ? 'Asked' : 'Since', time(reachedAt, 'relative', 'The run has not asked yet.')],
    reachedAt !== null && [completedAt === null ? 'Age' : 'Waited', renderAge(wait)],
    completedAt === null && deadline !== null && ['Until', time(deadline)],
    completedAt !== null && ['Ended', time(completedAt)],
    completedBy !== null && ['Answered by', renderAnswerer(wait, label)],
    value !== undefined && ['Answer', html`<code>${JSON.stringify(value)}</code>`],
  ]
  return facts.filter((fact) => fact !== false)
}

/** Who answered, and from where. */
function renderAnswerer({ completedBy, linkCreator }: Wait, label: QueuerLabel): Html {
  if (completedBy === null) return html`<span class="muted">–</span>`
  const { address } = completedBy
  const from = address === null ? nothing : html` <span class="muted">from ${address}</span>`
  if ('userId' in completedBy) return html`${label({ apiKeyId: null, ...completedBy })} in the dashboard${from}`
  if ('apiKeyId' in completedBy) return html`${label({ userId: null, ...completedBy })} through the API${from}`
  return html`a person with a link${linkCreator ? html` that ${label(linkCreator)} created` : nothing}${from}`
}

// On the page of a run

/** Of a run with more, its page shows what it waits for and what has ended last. */
export const shownWaitsMax = 50

/** The waits of a run, with the runs that it has called. */
export function renderRunWaits(waits: readonly Wait[], label: QueuerLabel): Html | '' {
  if (waits.length === 0) return nothing
  const rows = waits.map((wait) => [
    html`${renderName(wait)}${wait.completedBy === null ? nothing : html`<br />by ${renderAnswerer(wait, label)}`}`,
    wait.calledRunId === null ? kinds[wait.kind] : runLink(wait.calledRunId),
    renderStatus(wait),
    renderAge(wait),
    time(wait.completedAt ?? wait.deadline, 'relative', '–'),
  ])
  return html`<section class="card" id="waits"><h2>Waits</h2>
    ${table(['Name', 'For', 'Status', 'Waited', 'Until'], rows, 'What the run waits for')}
    ${waits.length < shownWaitsMax ? nothing : html`<p class="muted">At most ${shownWaitsMax} waits are shown. <code>listRunWaits</code> returns all.</p>`}
  </section>`
}

/** The runs above and below a run, as a list of lists. */
export function renderCallTree(tree: CallTree | undefined, id: string, workflows: Workflows): Html | '' {
  if (!tree) return nothing
  const { root, deletedCallerId, hasMore } = tree
  const renderNode = (run: CallTreeRun): Html => {
    const title = workflows.get(run.workflowId)?.title ?? run.workflowId
    const name = html`${title} <code>${shortId(run.id)}</code>`
    const isShown = run.id === id
    return html`<li>
      <div class="call" ${isShown ? html`aria-current="true"` : nothing}>
        ${isShown ? html`<strong>${name}</strong>` : html`<a href="/runs/${run.id}">${name}</a>`}
        ${runBadge(run)} <small class="muted">${renderRunDuration(run)}</small>
      </div>
      ${run.called.length === 0 ? nothing : html`<ul>${run.called.map(renderNode)}</ul>`}
    </li>`
  }
  return html`<section class="card" id="calls"><h2>Calls</h2>
    ${deletedCallerId === null ? nothing : html`<p class="muted">The run that called the first one was deleted.</p>`}
    <ul class="calls">${renderNode(root)}</ul>
    ${hasMore ? html`<p>More runs were called. <a href="/runs?parent=${id}">All runs that this run has called</a></p>` : nothing}
  </section>`
}
