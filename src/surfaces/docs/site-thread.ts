/** Worker thread that builds a part of the docs, so that the service keeps serving requests meanwhile. */
import { parentPort, workerData } from 'node:worker_threads'
import { buildDocs, buildReferences } from './site.ts'

const { part, addresses } = workerData
parentPort?.postMessage(await (part === 'docs' ? buildDocs(addresses) : buildReferences(addresses)))
