/** Templates of the form of a browser context's sign-in, of its deletion, and of signing in by hand. */
import type { User } from '../../../domain/accounts/user.ts'
import type { BrowserContext } from '../../../domain/browser-contexts/browser-contexts.ts'
import type { SignIn, SignInEntry } from '../../../domain/browser-contexts/sign-ins.ts'
import type { Workflow } from '../../../domain/workflows/workflow.ts'
import { time } from '../format.ts'
import {
  attribute,
  backLink,
  emptyState,
  facts,
  type Html,
  heading,
  html,
  inputField,
  nothing,
  notice,
  selectField,
} from '../html.ts'
import { renderLiveView } from '../live-view/live-view-template.ts'
import { runLink } from '../runs/run-labels.ts'
import { type FormValue, formatErrors } from '../workflows/form-values.ts'
import type { VariablesForm } from '../workflows/queue-form.ts'
import { renderVariables } from '../workflows/queue-form-template.ts'
import { guide, signInBadge } from './sign-in-state.ts'

export interface SignInForm {
  workflow: Workflow | undefined
  entered: VariablesForm
  totpSeed: FormValue
  removesTotp: boolean
  checkEverySeconds: FormValue
  /** Errors that belong to no field. */
  errors: readonly string[]
}

export const checkSeconds = { min: 60, max: 2_592_000 }

interface SignInFormPage {
  context: BrowserContext
  signIn: SignIn | undefined
  /** Those that sign in. */
  workflows: readonly Workflow[]
  form: SignInForm
}

export function renderSignInForm({ context, signIn, workflows, form }: SignInFormPage): Html {
  const back = `/browser-contexts/${context.id}`
  const head = html`${backLink(back, context.name)} ${heading(signIn ? 'Edit sign-in' : 'Set up sign-in', { lead: guide })}`
  const { workflow } = form
  if (!workflow) {
    const text = html`<p>A workflow signs in if its definition has <code>browser: true</code> and <code>signsIn: true</code>.</p><p>${guide}</p>`
    return html`${head} ${emptyState('No deployed workflow signs in', text)}`
  }
  const { entered, errors } = form
  const general = [...errors, ...entered.errors.map((error) => formatErrors([error]))]
  return html`${head} ${general.length > 0 ? notice('bad', general.join(' ')) : nothing}
    ${renderWorkflowChoice(back, workflow, workflows)}
    <form method="post" action="${back}/sign-in" class="card">
      <input type="hidden" name="workflowId" value="${workflow.id}" />
      <div class="form-head"><h2>Variables</h2>${renderModeLink(context, form)}</div>
      ${renderVariables(entered)}
      <h2>Codes and checks</h2>
      ${renderTotp(form, signIn?.hasTotp ?? false)}
      ${inputField({ name: 'checkEverySeconds', label: 'Check every … seconds', value: form.checkEverySeconds.text, error: form.checkEverySeconds.error, inputmode: 'numeric', hint: `From ${checkSeconds.min} to ${checkSeconds.max} (30 days), such as 3600 for every hour. Leave empty for no checks.` })}
      <div class="buttons"><button>${signIn ? 'Save changes' : 'Set up sign-in'}</button><a href="${back}">Cancel</a></div>
    </form>`
}

/** Another workflow has other variables: its form is another page. */
function renderWorkflowChoice(back: string, { id, title }: Workflow, workflows: readonly Workflow[]): Html {
  if (workflows.length === 1) return html`<p>Workflow: <a href="/workflows/${id}">${title}</a></p>`
  const options = workflows.map((workflow) => ({ value: workflow.id, title: workflow.title }))
  return html`<form method="get" action="${back}/sign-in" class="card" data-submit-on-change>
    ${selectField({ name: 'workflowId', label: 'Workflow', value: id, options })}
    <button class="secondary">Choose workflow</button>
  </form>`
}

function renderTotp({ totpSeed, removesTotp }: SignInForm, isStored: boolean): Html {
  const hint = isStored
    ? 'Leave empty to keep the stored seed.'
    : 'Of the authenticator app: in Base32, or the address of the QR code. Encrypted and never shown.'
  const field = { name: 'totpSeed', label: 'TOTP seed', hint, error: totpSeed.error }
  const remove = html`<label class="check"><input type="checkbox" name="removeTotp" ${attribute('checked', removesTotp)} /> Remove the stored seed</label>`
  return html`${inputField({ ...field, type: 'password', autocomplete: 'new-password', maxlength: 1024 })}
    ${isStored ? remove : nothing}`
}

/** Switches between fields and JSON. What was entered is lost. */
function renderModeLink({ id }: BrowserContext, { workflow, entered: { mode, jsonOnly } }: SignInForm): Html | '' {
  if (jsonOnly || !workflow) return nothing
  const query = new URLSearchParams({ workflowId: workflow.id, ...(mode === 'fields' && { as: 'json' }) })
  return html`<a href="/browser-contexts/${id}/sign-in?${query}">${mode === 'json' ? 'Edit as fields' : 'Edit as JSON'}</a>`
}

export function renderSignInDeletion({ id, name }: BrowserContext, signIn: SignIn): Html {
  return html`${backLink(`/browser-contexts/${id}`, name)} ${heading('Delete this sign-in?')}
    <form method="post" class="card">
      <p>Its variables, secrets and history are erased. <strong>This cannot be undone.</strong> The browser context keeps its
        versions. Runs that wait for the session go on, and fail if their workflow needs it.</p>
      ${facts([
        ['Workflow', html`<code>${signIn.workflowId}</code>`],
        ['State', signInBadge(signIn)],
        ['Signed in', time(signIn.signedInAt)],
      ])}
      <div class="buttons"><button class="danger">Delete sign-in</button><a href="/browser-contexts/${id}">Cancel</a></div>
    </form>`
}

/** The page on which a user signs in by hand, in the browser that the run has opened. */
export function renderByHand({ id, name }: BrowserContext, entry: SignInEntry, user: User): Html {
  const { runId } = entry
  const path = `/browser-contexts/${id}`
  return html`${backLink(path, name)} ${heading('Sign in by hand')}
    <div id="by-hand" data-live="/runs/${runId}/changes">
      ${entry.outcome === null ? renderInProgress(path, runId, user) : renderEnded(path, entry)}
    </div>`
}

function renderInProgress(path: string, runId: string, user: User): Html {
  return html`<section class="card">
      <p>${runLink(runId, 'Run')} opens a browser with the state of this browser context. Take over, sign in, and press
        <strong>Done</strong>: the state becomes a new version, and the runs that wait go on.</p>
      <noscript><p><strong>The browser is shown by a script, which your browser does not run.</strong> Instead,
        <a href="${path}">upload a storage state</a> with the session.</p></noscript>
      <form method="post" action="${path}/sign-in/by-hand/cancel" class="buttons">
        <button class="secondary danger">Cancel</button> <small>Cancelling changes nothing.</small>
      </form>
    </section>
    ${renderLiveView(runId, user, { returnLabel: 'Done', isOn: true })}`
}

function renderEnded(path: string, entry: SignInEntry): Html {
  const { outcome, error, runId } = entry
  const back = html`<p><a class="button" href="${path}">View browser context</a></p>`
  if (outcome === 'signedIn') {
    return html`${notice('good', 'You have signed in. The session is stored, and the runs that waited for it go on.')} ${back}`
  }
  const why = error ? html`<br />${error.message}` : nothing
  const text = outcome === 'cancelled' ? 'Cancelled. Nothing was stored.' : 'You are not signed in. Nothing was stored.'
  return html`${notice('warning', html`${text} ${why} <br />${runLink(runId, 'Run')} has the log.`)}
    <form method="post" action="${path}/sign-in/by-hand" class="buttons"><button>Try again</button><a href="${path}">View browser context</a></form>`
}
