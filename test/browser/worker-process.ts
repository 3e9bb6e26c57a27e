/** A process as a worker is one: it has a browser for its runs, says where, and does nothing more. */
import { pino } from 'pino'
import { BrowserHost } from '../../src/worker/browser/browser-host.ts'

const host = new BrowserHost({ path: process.argv[2], cdpUrl: undefined }, pino({ level: 'silent' }))
process.send?.((await host.acquire()).url)
