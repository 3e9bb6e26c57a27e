/** What the pages of workflows look like. */
import type { BrowserContext } from '../../../domain/browser-contexts/browser-contexts.ts'
import type { Workflow } from '../../../domain/workflows/workflow.ts'
import { copyable, emptyState, facts, heading, table, trail } from '../elements.ts'
import { type Html, html, nothing } from '../html.ts'
import { withContext } from './browser-choice.ts'
import { queueCommand } from './curl.ts'
import { exampleOf } from './example.ts'
import { queueFormView } from './form-view.ts'
import type { QueueForm } from './queue-form.ts'
import { concurrencyWords, retryWords, timeLimitWords } from './workflow-labels.ts'

export function listView(workflows: Workflow[]): Html {
  const lead = 'What this installation can run. Each is a module of WORKFLOWS_DIR.'
  return html`${heading('Workflows', { lead })} ${workflows.length === 0 ? noWorkflows() : workflowTable(workflows)}`
}

function noWorkflows(): Html {
  return emptyState(
    'No workflow yet',
    html`<p>Put a module into the directory that <code>WORKFLOWS_DIR</code> names, and start the service again.</p>
      <p>The directory <code>examples/workflows</code> has some to copy.</p>`,
  )
}

function workflowTable(workflows: Workflow[]): Html {
  const rows = workflows.map((workflow) => [
    html`<div class="stack">
      <a href="/workflows/${workflow.id}"><strong>${workflow.title}</strong></a>
      ${workflow.description === null ? nothing : html`<small>${workflow.description}</small>`}
    </div>`,
    html`<code>${workflow.id}</code>`,
    workflow.version,
    html`<span class="row-actions">
      <a href="/workflows/${workflow.id}#queue" aria-label="Run ${workflow.title}">Run</a>
      <a href="/runs?workflow=${workflow.id}" aria-label="Runs of ${workflow.title}">Runs</a>
    </span>`,
  ])
  return table(['Workflow', 'Id', 'Version', ''], rows, 'Workflows')
}

interface ShownWorkflow {
  form: QueueForm
  refusal: string
  /** The browser contexts that a run can be queued with. */
  contexts: readonly BrowserContext[]
  executionUrl: string
}

export function workflowView({ form, refusal, contexts, executionUrl }: ShownWorkflow): Html {
  const { workflow } = form
  const { id, title, description } = workflow
  const actions = html`<a class="button secondary" href="/runs?workflow=${id}">Its runs</a>`
  const browserContext = withContext(form.browser, contexts)
  const command = queueCommand(executionUrl, id, exampleOf(workflow.variables), { browserContext })
  return html`${trail('/workflows', 'Workflows')}
    ${heading(title, { ...(description !== null && { lead: description }), actions })}
    <section class="card">${facts(factsOf(workflow))}</section>
    <div class="beside">
      <div>${queueFormView(form, refusal, contexts)}</div>
      <div>
        <section class="card">
          <h2>Run it from a program</h2>
          ${copyable('command', command, { label: 'Copy command' })}
          <p class="muted">With an <a href="/api-keys">API key</a> in place of <code>&lt;API_KEY&gt;</code>.</p>
          ${workflow.usesBrowser && !browserContext ? contextAdvice() : nothing}
        </section>
        <section class="card">
          <h2>Schemas</h2>
          <details><summary>Its output</summary>${copyable('output-schema', pretty(workflow.output))}</details>
          <details><summary>Its variables</summary>${copyable('variables-schema', pretty(workflow.variables))}</details>
        </section>
      </div>
    </div>`
}

function factsOf(workflow: Workflow): [string, Html | string][] {
  return [
    ['Id', html`<code>${workflow.id}</code>`],
    ['Version', workflow.version],
    ['Time limit', timeLimitWords(workflow)],
    ['Runs at the same time', concurrencyWords(workflow)],
    ['Retries', retryWords(workflow)],
    ...(workflow.usesBrowser ? [['Browser', 'each run has one of its own'] as [string, string]] : []),
  ]
}

function contextAdvice(): Html {
  return html`<p class="muted">It starts with an empty browser. To start with a
    <a href="/browser-contexts">browser context</a>, copy the command of its page.</p>`
}

function pretty(value: unknown): string {
  return JSON.stringify(value, null, 2)
}
