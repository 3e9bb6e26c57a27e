/** Signs in to a shop with a password and a code of an authenticator app; a captcha is for people. */
import { defineWorkflow } from 'execution-service/workflow'
import { isSignedOut } from './shop/session.ts'

export default defineWorkflow({
  id: 'heal-sign-in',
  version: '1.0.0',
  title: 'Sign in to a shop',
  variables: {
    type: 'object',
    required: ['url', 'user', 'password'],
    properties: {
      url: { type: 'string' },
      user: { type: 'string' },
      password: { type: 'string', writeOnly: true },
    },
  },
  output: {},
  browser: true,
  signsIn: true,
  signedOut: isSignedOut,
  // Quick, since a captcha does not go away.
  retry: { maxAttempts: 2, backoffSeconds: 0 },
  async run({ variables, browser, totp, log }) {
    const page = await (await browser()).newPage()
    await page.goto(new URL('/sign-in', variables.url).href)
    await page.getByLabel('User name').fill(variables.user)
    await page.getByLabel('Password').fill(variables.password)
    await page.getByRole('button', { name: 'Sign in' }).click()
    await page.waitForURL((url) => url.pathname !== '/sign-in')
    if (await page.getByRole('button', { name: 'I am a person' }).isVisible()) throw new Error('There is a captcha.')
    const code = await totp()
    log(`The code is ${code}.`)
    await page.getByLabel('Code').fill(code)
    await page.getByRole('button', { name: 'Continue' }).click()
    await page.waitForURL((url) => url.pathname === '/orders')
    return null
  },
})
