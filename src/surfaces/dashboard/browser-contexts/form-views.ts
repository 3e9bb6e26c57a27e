/** What the pages look like that create, rename, delete and restore. */
import type { BrowserContext } from '../../../domain/browser-contexts/browser-contexts.ts'
import type { Version } from '../../../domain/browser-contexts/context-versions.ts'
import { nameLengthMax } from '../../../domain/display-names.ts'
import { byteSize, facts, heading, inputField, moment, notice, trail } from '../elements.ts'
import { type Html, html, nothing } from '../html.ts'
import type { QueuerOf } from '../runs/queuers.ts'
import { runLink } from '../runs/run-labels.ts'
import { sitesOf } from './context-labels.ts'
import { writerOf } from './context-view.ts'

const hint = 'What it is for, such as “shop, signed in”. Left empty, it gets one after its id.'

export function newView(name: string, error?: string): Html {
  return html`${trail('/browser-contexts', 'Browser Contexts')} ${heading('Create a browser context')}
    <form method="post" action="/browser-contexts/new" class="card">
      ${inputField({ name: 'name', label: 'Name', value: name, error, maxlength: nameLengthMax, autofocus: true, hint })}
      <div class="buttons"><button>Create browser context</button><a href="/browser-contexts">Cancel</a></div>
    </form>`
}

export function renameView({ id, name }: BrowserContext, text: string, error?: string): Html {
  const field = { name: 'name', label: 'Name', value: text, error, required: true, autofocus: true }
  return html`${trail(`/browser-contexts/${id}`, name)} ${heading('Rename browser context')}
    <form method="post" class="card">
      ${inputField({ ...field, maxlength: nameLengthMax })}
      <div class="buttons"><button>Rename</button><a href="/browser-contexts/${id}">Cancel</a></div>
    </form>`
}

export function deleteView(context: BrowserContext): Html {
  const { id, name, heldByRunId, version, lastUsedAt } = context
  const held =
    heldByRunId !== null &&
    html`<p>${runLink(heldByRunId, 'Run')} holds it. It goes on, but what its browser holds is not kept.</p>`
  return html`${trail(`/browser-contexts/${id}`, name)} ${heading(`Delete “${name}”?`)}
    <form method="post" class="card">
      <p>Everything in it is erased, in all its versions. <strong>This cannot be undone.</strong></p>
      <p>Runs that are queued with it start all the same, and fail when they ask for their browser.</p>
      ${held || nothing}
      ${facts([
        ['Version', version === 0 ? 'none' : `${version}`],
        ['Sites with cookies', sitesOf(context, 10)],
        ['Last used', moment(lastUsedAt)],
      ])}
      <div class="buttons"><button class="danger">Delete browser context</button><a href="/browser-contexts/${id}">Cancel</a></div>
    </form>`
}

interface Restoring {
  context: BrowserContext
  version: Version
  userOf: QueuerOf
  fault?: Html | undefined
}

export function restoreView({ context, version, userOf, fault }: Restoring): Html {
  const { id, name } = context
  const { number, createdAt, sizeBytes } = version
  return html`${trail(`/browser-contexts/${id}`, name)} ${heading(`Restore version ${number}?`)}
    ${fault ? notice('bad', fault) : nothing}
    <form method="post" class="card">
      <p>It becomes version ${context.version + 1}, with which the next run starts. Version ${context.version} stays among
        the earlier ones, and can be restored as well.</p>
      ${facts([
        ['Written', moment(createdAt, 'exact')],
        ['By', writerOf(version, userOf)],
        ['Size', byteSize(sizeBytes)],
        ['Sites with cookies', sitesOf(version, 10)],
      ])}
      <div class="buttons"><button>Restore version ${number}</button><a href="/browser-contexts/${id}">Cancel</a></div>
    </form>`
}
