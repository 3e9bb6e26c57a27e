/** Keeps a page of the web as a PDF or a picture, for the caller to download: a run's artifact. */
import { defineWorkflow } from 'execution-service/workflow'

export default defineWorkflow({
  id: 'page-to-file',
  version: '1.0.0',
  title: 'Keep a page as PDF or PNG',
  description: 'Opens a page and keeps it as the artifact `page.pdf` or `page.png` of the run.',
  variables: {
    type: 'object',
    additionalProperties: false,
    required: ['url'],
    properties: {
      url: {
        type: 'string',
        format: 'uri',
        pattern: '^https?://',
        description: 'The page. With a browser context, it is seen as whoever has signed in there.',
        examples: ['http://127.0.0.1:3080/products'],
      },
      format: { type: 'string', enum: ['pdf', 'png'], default: 'pdf', description: 'What to make of it.' },
      wholePage: {
        type: 'boolean',
        default: false,
        description: 'Whether a PNG shows all of the page, or what a window of 1280 × 720 does. A PDF has all of it.',
      },
    },
  },
  output: {
    type: 'object',
    additionalProperties: false,
    required: ['artifact', 'bytes', 'title'],
    properties: {
      artifact: { type: 'string', description: "The file's name, to download it by." },
      bytes: { type: 'integer', description: 'How long it is.' },
      title: { type: 'string', description: 'What the page calls itself.' },
    },
  },
  timeLimitSeconds: 120,
  browser: true,
  async run({ variables, log, artifact, browser }) {
    const { url, format = 'pdf', wholePage = false } = variables
    const context = await browser()
    const page = await context.newPage()
    const answer = await page.goto(url)
    // The page of an error looks like any other in a PDF that nobody opens for a month.
    if (!answer?.ok()) throw new Error(`${url} answered ${answer?.status()}: there is no page to keep.`)
    const title = await page.title()
    const bytes =
      format === 'png'
        ? await page.screenshot({ fullPage: wholePage })
        : await page.pdf({ format: 'A4', printBackground: true })
    const name = `page.${format}`
    await artifact(name, bytes)
    log(`Kept "${title}" as ${name}`)
    return { artifact: name, bytes: bytes.length, title }
  },
})
