/** The sign-in of a browser context: set, delete and start it, and sign in by hand. */
import type { BrowserContext } from '../../../domain/browser-contexts/browser-contexts.ts'
import type { SignIn } from '../../../domain/browser-contexts/sign-ins.ts'
import { mask } from '../../../domain/workflows/secrets.ts'
import type { Workflow } from '../../../domain/workflows/workflow.ts'
import type { Dependencies } from '../dependencies.ts'
import type { Html } from '../html.ts'
import { orNotFound, type Page, type PageHandler, type PageRequest } from '../page-handler.ts'
import {
  newVariablesForm,
  parseForm as parseVariables,
  readVariablesForm,
  withErrors,
  withoutSecrets,
} from '../workflows/queue-form.ts'
import { checkSeconds, renderByHand, renderSignInDeletion, renderSignInForm, type SignInForm } from './sign-in-form.ts'

export const showSignInForm: PageHandler = async (request, deps) => {
  const { query } = request
  const found = await findSignIn(request, deps)
  const { signIn } = found
  const workflow = chooseWorkflow(listSigningIn(request, deps), query.get('workflowId') ?? signIn?.workflowId)
  return formPage(request, deps, found, {
    workflow,
    entered: newVariables(workflow, signIn, query.get('as') === 'json'),
    totpSeed: { text: '' },
    removesTotp: false,
    checkEverySeconds: { text: signIn?.checkEverySeconds?.toString() ?? '' },
    errors: [],
  })
}

export const setSignIn: PageHandler = async (request, deps) => {
  const { account, actor } = request
  const found = await findSignIn(request, deps)
  const { context, signIn } = found
  const form = readForm(request, deps, signIn)
  const refuse = (shown: SignInForm) =>
    formPage(request, deps, found, { ...shown, entered: withoutSecrets(shown.entered) }, 400)
  const parsed = parseVariables(form.entered)
  if ('invalid' in parsed) return refuse({ ...form, entered: parsed.invalid })
  if (!form.workflow || form.checkEverySeconds.error !== undefined) return refuse(form)
  const { text } = form.checkEverySeconds
  const seed = form.totpSeed.text || (signIn?.hasTotp && !form.removesTotp ? mask : undefined)
  const given = {
    workflowId: form.workflow.id,
    variables: parsed.value,
    checkEverySeconds: text === '' ? null : Number(text),
    ...(seed !== undefined && { totpSeed: seed }),
  }
  const result = await deps.signIns.set(account.id, context.id, given, actor)
  if (result.kind === 'invalid') return refuse(withRefusal(form, result.errors))
  orNotFound(result.kind === 'set')
  return redirectTo(context, 'signInSet')
}

/** Shows each error at its field. */
function withRefusal(form: SignInForm, refused: readonly { pointer: string; detail: string }[]): SignInForm {
  const of = (member: string) => refused.filter(({ pointer }) => pointer.split('/')[1] === member)
  const variables = of('variableData').map(({ pointer, detail }) => {
    return { pointer: pointer.slice('/variableData'.length), detail }
  })
  const describe = (member: string) => of(member).map(({ detail }) => `This ${detail}.`)
  const [seedError] = describe('totpSeed')
  return {
    ...form,
    entered: withErrors(form.entered, variables),
    totpSeed: { text: '', ...(seedError && { error: seedError }) },
    errors: describe('workflowId'),
  }
}

function readForm({ account, form: fields }: PageRequest, deps: Dependencies, signIn: SignIn | undefined): SignInForm {
  const workflow = deps.workflows.current(account.id).get(fields.get('workflowId') ?? '')
  const fresh = newVariables(workflow, signIn, false)
  const seconds = (fields.get('checkEverySeconds') ?? '').trim()
  return {
    workflow,
    entered: readVariablesForm(fresh, fields.has('variables') ? 'json' : 'fields', fields),
    totpSeed: { text: (fields.get('totpSeed') ?? '').trim() },
    removesTotp: fields.has('removeTotp'),
    checkEverySeconds: { text: seconds, ...findSecondsError(seconds) },
    errors: [],
  }
}

function findSecondsError(text: string): { error?: string } {
  const { min, max } = checkSeconds
  const seconds = Number(text)
  if (text === '' || (Number.isInteger(seconds) && seconds >= min && seconds <= max)) return {}
  return { error: `Enter a whole number from ${min} to ${max}.` }
}

/** Secrets are kept only for the workflow that they were entered for. */
function newVariables(workflow: Workflow | undefined, signIn: SignIn | undefined, wantsJson: boolean) {
  const isSame = signIn && signIn.workflowId === workflow?.id
  const earlier = isSame ? ({ variables: signIn.variables, owner: 'signIn' } as const) : undefined
  return newVariablesForm(workflow?.variables ?? {}, wantsJson, earlier)
}

function listSigningIn({ account }: PageRequest, { workflows }: Dependencies): Workflow[] {
  return workflows
    .current(account.id)
    .list()
    .filter(({ signsIn }) => signsIn)
}

function chooseWorkflow(workflows: readonly Workflow[], id: string | undefined): Workflow | undefined {
  return workflows.find((workflow) => workflow.id === id) ?? workflows[0]
}

interface Found {
  context: BrowserContext
  signIn: SignIn | undefined
}

async function findSignIn({ account, params }: PageRequest, deps: Dependencies): Promise<Found> {
  const context = orNotFound(await deps.browserContexts.get(account.id, params.id ?? ''))
  return { context, signIn: await deps.signIns.get(account.id, context.id) }
}

async function formPage(
  request: PageRequest,
  deps: Dependencies,
  { context, signIn }: Found,
  form: SignInForm,
  status = 200,
): Promise<Page> {
  const body = renderSignInForm({ context, signIn, workflows: listSigningIn(request, deps), form })
  return contextTab(signIn ? 'Edit sign-in' : 'Set up sign-in', body, status)
}

export const confirmSignInDeletion: PageHandler = async (request, deps) => {
  const { context, signIn } = await findSignIn(request, deps)
  if (!signIn) return { location: `/browser-contexts/${context.id}` }
  return contextTab('Delete sign-in', renderSignInDeletion(context, signIn))
}

export const deleteSignIn: PageHandler = async (request, deps) => {
  const { context } = await findSignIn(request, deps)
  orNotFound(await deps.signIns.delete(request.account.id, context.id, request.actor))
  return redirectTo(context, 'signInDeleted')
}

export const signInNow: PageHandler = async (request, deps) => {
  const { context } = await findSignIn(request, deps)
  const started = await deps.signIns.signInNow(request.account.id, context.id, request.actor)
  orNotFound(started.kind !== 'noSignIn')
  return redirectTo(context, started.kind === 'started' ? 'signingIn' : 'signInRefused')
}

export const startByHand: PageHandler = async (request, deps) => {
  const { context } = await findSignIn(request, deps)
  const started = await deps.signIns.startByHand(request.account.id, context.id, request.actor)
  orNotFound(started.kind !== 'noSignIn')
  if (started.kind !== 'started') return redirectTo(context, 'signInRefused')
  const entry = await findByHand(request, deps)
  if (entry?.runId !== started.runId) return redirectTo(context, 'alreadySigningIn')
  return { location: `/browser-contexts/${context.id}/sign-in/by-hand` }
}

/** The latest sign-in by hand, or the page of the context if there is none. */
export const showByHand: PageHandler = async (request, deps) => {
  const { context } = await findSignIn(request, deps)
  const entry = await findByHand(request, deps)
  if (!entry) return { location: `/browser-contexts/${context.id}` }
  return contextTab('Sign in by hand', renderByHand(context, entry, request.user))
}

export const cancelByHand: PageHandler = async (request, deps) => {
  const { context } = await findSignIn(request, deps)
  const entry = await findByHand(request, deps)
  if (entry?.outcome === null) await deps.signIns.cancel(request.account.id, context.id, request.actor)
  return redirectTo(context, 'byHandCancelled')
}

async function findByHand({ account, params }: PageRequest, { signIns }: Dependencies) {
  const history = await signIns.history(account.id, params.id ?? '')
  return history.find(({ kind }) => kind === 'byHand')
}

function redirectTo({ id }: BrowserContext, done: string): { location: string } {
  return { location: `/browser-contexts/${id}?done=${done}` }
}

function contextTab(title: string, body: Html, status = 200): Page {
  return { title, tab: 'browser-contexts', body, status }
}
