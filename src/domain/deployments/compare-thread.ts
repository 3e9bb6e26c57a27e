/** A thread that compares two versions of a workflow. */
import { parentPort, workerData } from 'node:worker_threads'
import { compareWorkflows } from './compare-workflows.ts'

const [before, after] = workerData
parentPort?.postMessage(compareWorkflows(before, after))
