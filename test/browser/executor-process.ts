/** Opens a page in a browser, as an executor does, and waits. */
import { openBrowser } from '../../src/worker/browser/connection.ts'

const { context } = await openBrowser({ url: process.argv[2] ?? '' }, undefined)
await (await context.newPage()).goto('data:text/html,<title>Mine</title>')
process.send?.('open')
