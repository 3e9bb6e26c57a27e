/** The page behind a link to answer a wait, for people without an account. */
import type { Request, RequestHandler, Response } from 'express'
import type { Answered, OpenedLink } from '../../../domain/run-api/waits.ts'
import type { Dependencies } from '../dependencies.ts'
import { submittedForm } from '../form-body.ts'
import { time } from '../format.ts'
import { type Html, html, nothing, notice } from '../html.ts'
import { renderPlainPage } from '../layout.ts'
import { PageNotFound } from '../page-handler.ts'
import { type PublicHandler, sendHtml } from '../page-routes.ts'
import {
  type AnswerForm,
  newAnswerForm,
  parseAnswer,
  readAnswerForm,
  refuseAnswer,
  renderAnswerFields,
  renderShown,
} from './answer-form.ts'

/** Has no effect on the link, so that programs that preview links do not answer. */
export const showAnswerLink: PublicHandler = async (request, response, deps) => {
  const link = await openLink(request, deps)
  if (link.state !== 'open') return sendClosed(response, link, link.state)
  await sendForm(response, deps, link, newAnswerForm(schemaOf(link)), 200)
}

/** Precedes the body, which is read for existing links only. */
export function requireAnswerLink(deps: Dependencies): RequestHandler {
  return async (request, response, next) => {
    response.locals.answerLink = await openLink(request, deps)
    next()
  }
}

export const answerByLink: PublicHandler = async ({ ip = null }, response, deps) => {
  const link: OpenedLink = response.locals.answerLink
  // A second click sends the same answer again.
  if (link.state !== 'open' && link.state !== 'used') return sendClosed(response, link, link.state)
  const form = readAnswerForm(schemaOf(link), submittedForm(response))
  const parsed = parseAnswer(form)
  const answered: Answered | undefined =
    'value' in parsed ? await deps.waits.answerByLink(link, parsed.value, ip) : undefined
  switch (answered?.kind) {
    case 'answered':
    case 'repeated':
      return sendThanks(response, link)
    case 'otherAnswer':
    case 'timedOut':
    case 'ended':
      return sendClosed(response, link, link.state === 'used' ? 'used' : answered.kind)
    case 'noSuchRun':
    case 'noSuchWait':
      throw unknownLink()
    default: {
      if (link.state === 'used') return sendClosed(response, link, link.state)
      const refused = answered ? refuseAnswer(form, answered.errors) : 'invalid' in parsed ? parsed.invalid : form
      return sendForm(response, deps, link, refused, 400)
    }
  }
}

async function openLink({ params }: Request, { waits }: Dependencies): Promise<OpenedLink> {
  const link = await waits.openLink(String(params.answer))
  if (!link) throw unknownLink()
  return link
}

function unknownLink(): PageNotFound {
  return new PageNotFound(
    'This link does not exist, or what it asked about was deleted. Check that the address is complete.',
  )
}

function schemaOf({ wait }: OpenedLink) {
  return wait.declared?.schema ?? {}
}

function titleOf({ wait }: OpenedLink): string {
  return wait.title ?? `Answer “${wait.name}”`
}

async function sendForm(response: Response, deps: Dependencies, link: OpenedLink, form: AnswerForm, status: number) {
  const { wait, accountId, expiresAt } = link
  const account = await deps.accounts.get(accountId)
  const title = titleOf(link)
  const until = Math.min(expiresAt, wait.deadline ?? expiresAt)
  const body = html`<h1>${title}</h1>
    ${wait.declared?.description ? html`<p>${wait.declared.description}</p>` : nothing}
    ${renderShown(wait.shown)}
    <form method="post">${renderAnswerFields(form)}</form>
    <p class="muted">
      Asked by ${account?.name ?? ''}. Answer before ${time(until, 'exact')}. The first answer counts.
    </p>`
  await sendHtml(response, status, renderPlainPage(title, body))
}

async function sendThanks(response: Response, link: OpenedLink): Promise<void> {
  const body = html`<h1>${titleOf(link)}</h1> ${notice('good', 'Your answer is stored. You can close this page.')}`
  await sendHtml(response, 200, renderPlainPage(titleOf(link), body))
}

const closed: Record<Exclude<OpenedLink['state'], 'open'>, string> = {
  used: 'This link was used: its answer is stored. Each link works once.',
  otherAnswer: 'Another answer was stored before. The first answer counts.',
  expired: 'This link has expired. Ask the sender for a new one.',
  timedOut: 'The time for an answer is over.',
  ended: 'No answer is needed any more: the run that asked has ended.',
}

async function sendClosed(response: Response, link: OpenedLink, state: keyof typeof closed): Promise<void> {
  const { completedAt } = link.wait
  const at: Html | '' = completedAt === null ? nothing : html`<p class="muted">Since ${time(completedAt, 'exact')}.</p>`
  const body = html`<h1>${titleOf(link)}</h1> ${notice('warning', closed[state])}${at}`
  await sendHtml(response, 410, renderPlainPage(titleOf(link), body))
}
