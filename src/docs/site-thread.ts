/** Builds the site for a service, in a thread of its own: requests go on meanwhile, and its memory is given back. */
import { parentPort } from 'node:worker_threads'
import { docsSite } from './site.ts'

parentPort?.postMessage(await docsSite())
