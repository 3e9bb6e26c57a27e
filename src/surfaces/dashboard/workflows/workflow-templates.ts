/** Templates of the list of workflows and of one workflow's page. */
import type { BrowserContext } from '../../../domain/browser-contexts/browser-contexts.ts'
import { concurrencyOf } from '../../../domain/workflows/concurrency.ts'
import { exampleVariables } from '../../../domain/workflows/example-values.ts'
import type { Throttle } from '../../../domain/workflows/throttle.ts'
import type { Workflow } from '../../../domain/workflows/workflow.ts'
import { formatDuration } from '../format.ts'
import { backLink, copyable, emptyState, type Fact, facts, type Html, heading, html, nothing, table } from '../html.ts'
import { toContextQuery } from './browser-context-choice.ts'
import { queueCommand } from './curl-commands.ts'
import type { QueueForm } from './queue-form.ts'
import { renderQueueForm } from './queue-form-template.ts'

export function renderWorkflowList(workflows: Workflow[]): Html {
  const lead = html`The workflows that this account can run, as they were deployed.`
  return html`${heading('Workflows', { lead })} ${workflows.length === 0 ? noWorkflows : renderWorkflowTable(workflows)}`
}

const noWorkflows = emptyState(
  'No workflows',
  html`<p>Deploy a directory of workflows: <code>npm run cli -- workflows deploy DIR</code>.</p>
    <p>The directory <code>examples/workflows</code> has workflows to start from.</p>`,
)

function renderWorkflowTable(workflows: Workflow[]): Html {
  const rows = workflows.map(({ id, title, description, version }) => [
    html`<div class="stack">
      <a href="/workflows/${id}"><strong>${title}</strong></a>
      ${description === null ? nothing : html`<small>${description}</small>`}
    </div>`,
    html`<code>${id}</code>`,
    version,
    html`<span class="row-actions">
      <a href="/workflows/${id}#queue" aria-label="Run ${title}">Run</a>
      <a href="/runs?workflow=${id}" aria-label="View runs of ${title}">View runs</a>
    </span>`,
  ])
  return table(['Workflow', 'ID', 'Version', ''], rows, 'Workflows')
}

interface WorkflowPage {
  deploymentId: string | null
  form: QueueForm
  error: string
  contexts: readonly BrowserContext[]
  executionUrl: string
}

export function renderWorkflow({ form, error, contexts, executionUrl, deploymentId }: WorkflowPage): Html {
  const { workflow } = form
  const { id, title, description } = workflow
  const actions = html`<a class="button secondary" href="/docs/workflows/${id}">Docs</a>
    <a class="button secondary" href="/runs?workflow=${id}">View runs</a>`
  const browserContext = toContextQuery(form.context, contexts)
  const command = queueCommand(executionUrl, id, exampleVariables(workflow.variables), { browserContext })
  const contextHint = html`<p class="muted">The run starts with an empty browser. To start with a
    <a href="/browser-contexts">browser context</a>, copy the command from its page.</p>`
  return html`${backLink('/workflows', 'Workflows')}
    ${heading(title, { ...(description !== null && { lead: description }), actions })}
    <section class="card">${facts(workflowFacts(workflow, deploymentId))}</section>
    <div class="columns">
      <div>${renderQueueForm(form, error, contexts)}</div>
      <div>
        <section class="card">
          <h2>Run from a program</h2>
          ${copyable('command', command, { label: 'Copy command' })}
          <p class="muted">Replace <code>&lt;API_KEY&gt;</code> with an <a href="/api-keys">API key</a>.</p>
          ${workflow.usesBrowser && !browserContext ? contextHint : nothing}
        </section>
        <section class="card">
          <h2>Schemas</h2>
          <details><summary>Output</summary>${copyable('output-schema', formatJson(workflow.output))}</details>
          <details><summary>Variables</summary>${copyable('variables-schema', formatJson(workflow.variables))}</details>
        </section>
      </div>
    </div>`
}

function workflowFacts(workflow: Workflow, deploymentId: string | null): Fact[] {
  const { id, version, timeLimitSeconds, usesBrowser } = workflow
  return [
    ['ID', html`<code>${id}</code>`],
    ['Version', version],
    ...(deploymentId === null ? [] : [['Deployment', html`<code>${deploymentId.slice(0, 12)}</code>`] satisfies Fact]),
    ['Time limit', `${formatDuration(timeLimitSeconds * 1000)} per attempt`],
    ['Concurrency', describeConcurrency(workflow)],
    ...(workflow.throttle ? [['Rate', describeThrottle(workflow.throttle)] satisfies Fact] : []),
    ['Retries', describeRetries(workflow)],
    ...(usesBrowser ? [['Browser', 'one per run'] satisfies Fact] : []),
  ]
}

function describeConcurrency(workflow: Workflow): string {
  const concurrency = concurrencyOf(workflow)
  if (!concurrency) return 'limited by worker slots'
  return `${concurrency.limit} at a time${scopes[concurrency.per]}`
}

const scopes = { workflow: '', account: ' in each account', key: ' for each concurrency key' }

function describeThrottle({ limit, periodSeconds, per }: Throttle): string {
  return `${limit} ${limit === 1 ? 'start' : 'starts'} in ${formatDuration(periodSeconds * 1000)}${scopes[per]}`
}

/** Further waits are abbreviated. */
const waitsMax = 4

function describeRetries({ retry }: Workflow): string {
  const { maxAttempts, backoffSeconds, backoffFactor } = retry
  if (maxAttempts === 1) return 'none'
  const count = Math.min(maxAttempts - 1, waitsMax)
  const waits = Array.from({ length: count }, (_, index) => {
    const seconds = backoffSeconds * backoffFactor ** index
    return seconds === 0 ? 'no wait' : formatDuration(seconds * 1000)
  })
  const isConstant = new Set(waits).size === 1
  const described = isConstant ? waits.slice(0, 1) : [...waits, ...(maxAttempts - 1 > count ? ['…'] : [])]
  return `up to ${maxAttempts} attempts, with ${described.join(', ')} between them`
}

function formatJson(value: unknown): string {
  return JSON.stringify(value, null, 2)
}
