/** Saves a web page as PDF or PNG, for the caller to download as an artifact. */
import { defineWorkflow } from 'execution-service/workflow'
import { openPublicBrowser } from './access/browser.ts'

export default defineWorkflow({
  id: 'page-to-file',
  version: '1.0.0',
  title: 'Save a page as PDF or PNG',
  description: 'Opens a page and stores it as the artifact `page.pdf` or `page.png`.',
  variables: {
    type: 'object',
    additionalProperties: false,
    required: ['url'],
    properties: {
      url: {
        type: 'string',
        format: 'uri',
        pattern: '^https?://',
        description: 'Address of the page. With a browser context, the page is opened with its sign-in.',
        examples: ['http://127.0.0.1:3080/products'],
      },
      format: { type: 'string', enum: ['pdf', 'png'], default: 'pdf', description: 'Format of the artifact.' },
      wholePage: {
        type: 'boolean',
        default: false,
        description: 'Whether a PNG shows the whole page instead of a window of 1280 × 720. A PDF always does.',
      },
    },
  },
  output: {
    type: 'object',
    additionalProperties: false,
    required: ['artifact', 'bytes', 'title'],
    properties: {
      artifact: { type: 'string', description: 'Name of the artifact.' },
      bytes: { type: 'integer', description: 'Size of the artifact in bytes.' },
      title: { type: 'string', description: 'Title of the page.' },
    },
  },
  timeLimitSeconds: 120,
  browser: true,
  async run({ variables, log, artifact, browser }) {
    const { url, format = 'pdf', wholePage = false } = variables
    const context = await openPublicBrowser(browser, url)
    const page = await context.newPage()
    const response = await page.goto(url)
    // Otherwise the artifact would be a picture of the error page.
    if (!response?.ok()) throw new Error(`${url} responded with ${response?.status()}.`)
    const title = await page.title()
    const bytes =
      format === 'png'
        ? await page.screenshot({ fullPage: wholePage })
        : await page.pdf({ format: 'A4', printBackground: true })
    const name = `page.${format}`
    await artifact(name, bytes)
    log(`Saved "${title}" as ${name}`)
    return { artifact: name, bytes: bytes.length, title }
  },
})
