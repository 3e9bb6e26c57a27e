/** Templates of the forms that create, rename, delete and restore. */
import type { BrowserContext } from '../../../domain/browser-contexts/browser-contexts.ts'
import type { Version } from '../../../domain/browser-contexts/version-list.ts'
import { nameLengthMax } from '../../../domain/display-names.ts'
import { formatBytes, time } from '../format.ts'
import { backLink, facts, type Html, heading, html, inputField, nothing, notice } from '../html.ts'
import { type QueuerLabel, runLink } from '../runs/run-labels.ts'
import { renderSites } from './context-labels.ts'
import { renderWriter } from './context-templates.ts'

const nameHint = 'For example, “shop, signed in”. Leave empty for a generated name.'

export function renderNewContext(name: string, error?: string): Html {
  return html`${backLink('/browser-contexts', 'Browser Contexts')} ${heading('Create browser context')}
    <form method="post" action="/browser-contexts/new" class="card">
      ${inputField({ name: 'name', label: 'Name', value: name, error, maxlength: nameLengthMax, autofocus: true, hint: nameHint })}
      <div class="buttons"><button>Create browser context</button><a href="/browser-contexts">Cancel</a></div>
    </form>`
}

export function renderContextDeletion(context: BrowserContext): Html {
  const { id, name, heldByRunId, version, lastUsedAt } = context
  const inUse =
    heldByRunId !== null &&
    html`<p>${runLink(heldByRunId, 'Run')} is using it. The run continues, but its browser state is not saved.</p>`
  return html`${backLink(`/browser-contexts/${id}`, name)} ${heading(`Delete “${name}”?`)}
    <form method="post" class="card">
      <p>All versions are erased. <strong>This cannot be undone.</strong></p>
      <p>Queued runs that use it still start, and fail when they request their browser.</p>
      ${inUse || nothing}
      ${facts([
        ['Version', version === 0 ? 'none' : `${version}`],
        ['Sites', renderSites(context, 10)],
        ['Last used', time(lastUsedAt)],
      ])}
      <div class="buttons"><button class="danger">Delete browser context</button><a href="/browser-contexts/${id}">Cancel</a></div>
    </form>`
}

interface Restore {
  context: BrowserContext
  version: Version
  queuerLabel: QueuerLabel
  error?: Html | undefined
}

export function renderRestore({ context, version, queuerLabel, error }: Restore): Html {
  const { id, name } = context
  const { number, createdAt, sizeBytes } = version
  return html`${backLink(`/browser-contexts/${id}`, name)} ${heading(`Restore version ${number}?`)}
    ${error ? notice('bad', error) : nothing}
    <form method="post" class="card">
      <p>Its state becomes version ${context.version + 1}, which the next run starts with. You can still restore version
        ${context.version} later.</p>
      ${facts([
        ['Saved', time(createdAt, 'exact')],
        ['Saved by', renderWriter(version, queuerLabel)],
        ['Size', formatBytes(sizeBytes)],
        ['Sites', renderSites(version, 10)],
      ])}
      <div class="buttons"><button>Restore version ${number}</button><a href="/browser-contexts/${id}">Cancel</a></div>
    </form>`
}
