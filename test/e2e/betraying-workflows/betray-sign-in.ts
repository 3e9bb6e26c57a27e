/** Signs in to a site that repeats what it is sent, writes every secret wherever a workflow can write, and fails. */
import { defineWorkflow } from 'execution-service/workflow'

const code = {
  type: 'object',
  required: ['code'],
  properties: { code: { type: 'string', writeOnly: true } },
} as const

export default defineWorkflow({
  id: 'betray-sign-in',
  version: '1.0.0',
  title: 'Betray what signing in needs',
  variables: {
    type: 'object',
    required: ['url', 'password', 'succeeds'],
    properties: {
      url: { type: 'string' },
      password: { type: 'string', writeOnly: true },
      succeeds: { type: 'boolean' },
    },
  },
  output: {},
  browser: true,
  signsIn: true,
  evidence: 'always',
  retry: { maxAttempts: 2, backoffSeconds: 0 },
  waits: { code: { schema: code } },
  async run({ variables: { url, password, succeeds }, browser, totp, waitFor, log, progress, step, artifact }) {
    const generated = await totp()
    // Before any message of the worker can arrive.
    process.stdout.write(`${generated}\n`)
    const context = await browser({ extraHTTPHeaders: { 'X-Password': password, 'X-Code': generated } })
    const page = await context.newPage()
    await page.goto(url)
    await page.getByLabel('Word').fill(password)
    await page.getByLabel('App').pressSequentially(generated)
    for (const [index, digit] of [...generated].entries()) await page.locator('fieldset input').nth(index).fill(digit)
    const answer = await waitFor('code', { title: `Not ${generated}`, show: { not: `${password} ${generated}` } })
    if (!answer.ok) throw new Error('There is no answer.')
    const answered = answer.value.code
    const message = `The secrets are ${password}, ${generated} and ${answered}.`
    log(message, 'warn')
    // biome-ignore lint/suspicious/noConsole: what a workflow writes to the console belongs to its run's log
    console.log({ password, generated, answered })
    process.stderr.write(`${message}\n`)
    progress(10, message)
    await step('remember', () => ({ [generated]: answered, password }))
    // A masked name is refused.
    await artifact(`${generated}.txt`, 'Only its name has a secret.').catch(() => {})
    await page.getByLabel('Mail').fill(answered)
    await page.getByRole('button', { name: 'Sign in' }).click()
    await page.waitForURL(/said/)
    await page.evaluate((text) => {
      // biome-ignore lint/suspicious/noConsole: a page's console belongs to the evidence
      console.log(text)
      localStorage.setItem('said', text)
      return fetch(`/missing/${text}`, { method: 'POST', body: JSON.stringify({ text }) })
    }, message)
    if (succeeds) return { message, [generated]: [answered, password] }
    const error = await page
      .getByText(message)
      .fill(generated, { timeout: 500 })
      .catch((caught: unknown) => caught)
    throw Object.assign(new Error(message, { cause: error }), { name: `Not${answered}` })
  },
})
