import { launch } from 'puppeteer-core'
import { use } from '../lib/use.mjs'

export default use('puppeteer-core', 'opens a page in a browser', 'Hello', async () => {
  const browser = await launch({ executablePath: process.env.BROWSER_PATH, args: ['--no-sandbox'] })
  try {
    const page = await browser.newPage()
    await page.setContent('<title>Hello</title>')
    return await page.title()
  } finally {
    await browser.close()
  }
})
