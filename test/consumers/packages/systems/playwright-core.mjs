import { chromium } from 'playwright-core'
import { use } from '../lib/use.mjs'

export default use('playwright-core', 'opens a page in a browser', 'Hello', async () => {
  const browser = await chromium.launch({ executablePath: process.env.BROWSER_PATH })
  try {
    const page = await browser.newPage()
    await page.setContent('<title>Hello</title>')
    return await page.title()
  } finally {
    await browser.close()
  }
})
