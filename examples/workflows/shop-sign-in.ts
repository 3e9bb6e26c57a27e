/** Signs in to a shop. The run's browser context then has the session for later runs. */
import { defineWorkflow } from 'execution-service/workflow'
import type { Page } from 'playwright-core'
import { openPublicBrowser } from './access/browser.ts'
import { openShop, output, readOrders, signedOut, url } from './shop/shop.ts'

export default defineWorkflow({
  id: 'shop-sign-in',
  version: '1.0.0',
  title: 'Sign in to a shop',
  description:
    "Signs in with the shop's form and reads the orders. Set it as the sign-in of a browser context to keep that signed in.",
  variables: {
    type: 'object',
    additionalProperties: false,
    required: ['url', 'userName', 'password'],
    properties: {
      url,
      userName: { type: 'string', minLength: 1, description: "The customer's name.", examples: ['ada'] },
      password: {
        type: 'string',
        minLength: 1,
        // A secret: encrypted at rest, and masked in everything that shows the run.
        writeOnly: true,
        description: "The customer's password.",
      },
    },
  },
  output,
  timeLimitSeconds: 60,
  // A captcha stays, and shops lock accounts after too many wrong passwords.
  retry: { maxAttempts: 2, backoffSeconds: 2 },
  browser: true,
  signsIn: true,
  signedOut,
  waits: {
    code: {
      title: 'Which code has the shop sent by mail?',
      schema: {
        type: 'object',
        additionalProperties: false,
        required: ['code'],
        properties: { code: { type: 'string', pattern: '^[0-9]{6}$', writeOnly: true } },
      },
    },
  },
  async run({ variables, log, browser, totp, waitFor }) {
    const context = await openPublicBrowser(browser, variables.url)
    const page = await context.newPage()
    await openShop(page, variables.url, '/sign-in')
    await page.getByLabel('User name').fill(variables.userName)
    await page.getByLabel('Password').fill(variables.password)
    await page.getByRole('button', { name: 'Sign in' }).click()
    await untilShown(page, [headings.orders, headings.captcha, headings.app, headings.mail])
    if (await page.getByRole('heading', { name: headings.captcha }).isVisible()) {
      throw new Error('The shop asks for a person: sign in by hand.')
    }
    if (await page.getByRole('heading', { name: headings.app }).isVisible()) {
      await enterCode(page, await totp(), [headings.orders, headings.mail])
    }
    if (await page.getByRole('heading', { name: headings.mail }).isVisible()) {
      const answer = await waitFor('code', { timeoutSeconds: 1800 })
      if (!answer.ok) throw new Error('The code from the mail was not entered within half an hour.')
      await enterCode(page, answer.value.code, [headings.orders])
    }
    const orders = await readOrders(page)
    log(`${variables.userName} has ${orders.length} orders`)
    return { orders }
  },
})

const headings = {
  orders: 'Your orders',
  captcha: 'Are you a person?',
  app: 'Two-factor authentication',
  mail: 'Check your mail',
}

async function enterCode(page: Page, code: string, next: string[]): Promise<void> {
  await page.getByRole('textbox').fill(code)
  await page.getByRole('button', { name: 'Continue' }).click()
  await untilShown(page, next)
}

/** Waits for whichever page appears, never for a fixed time. @throws if the shop refuses what was entered. */
async function untilShown(page: Page, names: string[]): Promise<void> {
  const refusal = page.getByRole('alert')
  const pages = names.map((name) => page.getByRole('heading', { name }))
  await pages
    .reduce((either, each) => either.or(each), refusal)
    .first()
    .waitFor()
  if (await refusal.isVisible()) throw new Error(`The shop refused the sign-in: ${await refusal.innerText()}`)
}
