/** Runs the examples of the guide to scenarios, in a browser that is found as the service finds its own. */
import { beforeAll, describe } from 'vitest'
import { findBrowser } from '../../src/worker/browser/find-browser.ts'

const { executable, environment } = await findBrowser(process.env.BROWSER_PATH, process.env)

beforeAll(async () => {
  Object.assign(process.env, environment)
})

// `chromium.launch` has no executable in the examples, as in projects that have installed Playwright's browser.
const { chromium } = await import('playwright-core')
const launch = chromium.launch.bind(chromium)
chromium.launch = (options) => launch({ executablePath: executable, chromiumSandbox: false, ...options })

describe.each(['orders', 'order-page'])('the example %s', async (name) => {
  await import(`../../examples/front-end/${name}.test.ts`)
})
