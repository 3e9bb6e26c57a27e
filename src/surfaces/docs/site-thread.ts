/** Worker thread that builds the site, so that the service keeps serving requests meanwhile. */
import { parentPort, workerData } from 'node:worker_threads'
import { buildDocs } from './site.ts'

parentPort?.postMessage(await buildDocs(workerData))
