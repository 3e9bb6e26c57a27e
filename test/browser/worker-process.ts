/** Starts a browser, as a worker does, sends its address, and waits. */
import { pino } from 'pino'
import { BrowserHost } from '../../src/worker/browser/browser-host.ts'

const host = new BrowserHost({ path: process.argv[2], cdpUrl: undefined }, pino({ level: 'silent' }))
process.send?.((await host.acquire()).url)
