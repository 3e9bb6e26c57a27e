/** Reads a page that only a customer who is signed in gets. */
import { defineWorkflow } from 'execution-service/workflow'
import { isSignedOut, shopVariables } from './shop/session.ts'

export default defineWorkflow({
  id: 'heal',
  version: '1.0.0',
  title: 'Read orders',
  variables: shopVariables,
  output: { type: 'integer' },
  browser: true,
  evidence: 'off',
  signedOut: isSignedOut,
  async run({ variables, browser, step }) {
    const page = await (await browser()).newPage()
    await page.goto(new URL('/orders', variables.url).href)
    // The session may have ended since the check: this fails, and signedOut says why.
    return step('read', () => page.getByRole('row').count().then(atLeastOne))
  },
})

function atLeastOne(count: number): number {
  if (count === 0) throw new Error('There are no orders.')
  return count
}
