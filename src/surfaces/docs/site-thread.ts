/** Builds the site for a service, in a thread of its own, so that requests go on meanwhile. */
import { parentPort, workerData } from 'node:worker_threads'
import { docsSite } from './site.ts'

parentPort?.postMessage(await docsSite(workerData))
