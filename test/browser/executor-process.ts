/** A process as an executor is one: it has a browser with a page, says so, and does nothing more. */
import { openBrowser } from '../../src/worker/browser/connection.ts'

const { context } = await openBrowser({ url: process.argv[2] ?? '' }, undefined)
await (await context.newPage()).goto('data:text/html,<title>Mine</title>')
process.send?.('open')
