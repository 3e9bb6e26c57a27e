/** The demo's chapter on the browser: a run signs in to a website, and the next one need not. */

import { customerName } from '../../../examples/site/customers.ts'
import type { components } from '../../../generated/browser-context.alpha/types.ts'
import type { Request } from './request.ts'
import { chapter, perform, put, type Run, type Stage, show } from './stage.ts'

type BrowserContext = components['schemas']['BrowserContext']

/** The longest that the service keeps an answer back. */
const wait = { Prefer: 'wait=30' }

/** @throws {DemoFailed} when an answer or a run is not what it should be. */
export async function tellBrowserStory(stage: Stage, title: string): Promise<void> {
  const { say, site } = stage
  const missing = await stage.browserMissing
  if (missing !== undefined) return say(chapter(title, `Workflows may use one, but not on this machine. ${missing}`))
  say(
    chapter(
      title,
      'A browser context keeps what sites have stored in a browser. This one is empty. (Browser contexts have an API of',
      'their own, and its header for the API key.)',
    ),
  )
  const answer = await perform(stage, newContext(stage), 201)
  const { id, name, status, version } = (await answer.json()) as BrowserContext
  say(`  ${JSON.stringify({ id, name, status, version })}`)

  say("\n  A run with that browser context signs in with the website's form, in a real browser.")
  const shop = `${site.url}/`
  await queueWith(stage, id, 'shop-sign-in', { url: shop, userName: customerName, password: stage.sitePassword })

  say('\n  The next run has a browser that is signed in.')
  await queueWith(stage, id, 'shop-orders', { url: shop })
  say(`  The website has seen ${site.signIns()} sign-in.`)
}

function newContext({ browserContextUrl, apiKey }: Stage): Request {
  const headers = { 'x-service-api-key': apiKey, 'Content-Type': 'application/json' }
  return { method: 'POST', url: `${browserContextUrl}/alpha/browser-contexts`, headers }
}

async function queueWith(stage: Stage, browserContextId: string, workflowId: string, variables: object): Promise<void> {
  const request = put(stage, workflowId, variables, wait)
  request.url += `?browserContextId=${browserContextId}`
  show(stage, (await (await perform(stage, request, 200)).json()) as Run)
}
