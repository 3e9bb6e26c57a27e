/** The queues that the service is compared with: how each enqueues a job durably, and how a worker executes its jobs. */
import { DatabaseSync } from 'node:sqlite'
import { DBOS, DBOSClient } from '@dbos-inc/dbos-sdk'
import { Queue as BullQueue, Worker as BullWorker } from 'bullmq'
import { makeWorkerUtils, run as runGraphile } from 'graphile-worker'
import pg from 'pg'
import { PgBoss } from 'pg-boss'

/** Identifies a job in reports of the worker. */
export type Job = { id: string }

/** Resolves when the job is stored durably. */
export type Enqueue = (job: Job) => Promise<unknown>

/** @param at when the job began, in milliseconds since 1970, if not now. */
export type Report = (job: Job, at?: number) => void

export interface Queue {
  /** @param location a PostgreSQL or Redis URL, or a directory. */
  open(location: string): Promise<Enqueue>
  /** Executes jobs, `slots` at a time, and reports each. Absent in queues that only store. */
  work?(location: string, slots: number, report: Report): Promise<unknown>
}

const name = 'runs'
/** As in the service's default settings. */
const connectionsMax = 10

export const queues: Record<string, Queue> = {
  /** One INSERT per job. Jobs of one iteration of the event loop share a commit, and its fsync. */
  sqlite: {
    async open(directory) {
      const database = new DatabaseSync(`${directory}/plain.db`)
      database.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA wal_autocheckpoint = 4000')
      database.exec('CREATE TABLE IF NOT EXISTS jobs (id INTEGER PRIMARY KEY, created_at INTEGER, data TEXT NOT NULL)')
      const insert = database.prepare('INSERT INTO jobs (created_at, data) VALUES (?, ?)')
      let waiting: { job: Job; resolve(): void }[] = []
      const commit = () => {
        const batch = waiting
        waiting = []
        database.exec('BEGIN IMMEDIATE')
        for (const { job } of batch) insert.run(Date.now(), JSON.stringify(job))
        database.exec('COMMIT')
        for (const { resolve } of batch) resolve()
      }
      return (job) =>
        new Promise<void>((resolve) => {
          if (waiting.push({ job, resolve }) === 1) setImmediate(commit)
        })
    },
  },

  postgres: {
    async open(location) {
      const pool = new pg.Pool({ connectionString: location, max: connectionsMax })
      await pool.query('CREATE TABLE IF NOT EXISTS jobs (id BIGSERIAL PRIMARY KEY, created_at BIGINT, data JSONB)')
      const text = 'INSERT INTO jobs (created_at, data) VALUES ($1, $2)'
      return (job) => pool.query({ name: 'insert', text, values: [Date.now(), JSON.stringify(job)] })
    },
  },

  'pg-boss': {
    async open(location) {
      const boss = new PgBoss({ connectionString: location, max: connectionsMax, supervise: false, schedule: false })
      await boss.start()
      await boss.createQueue(name, { notify: true })
      return (job) => boss.send(name, job)
    },
    async work(location, slots, report) {
      const boss = new PgBoss({ connectionString: location, max: connectionsMax, useListenNotify: true })
      await boss.start()
      const options = { batchSize: slots, burstWhenBatchFull: true, pollingIntervalSeconds: 0.5 }
      return boss.work<Job>(name, options, async (jobs) => {
        for (const { data } of jobs) report(data)
      })
    },
  },

  'graphile-worker': {
    async open(location) {
      const utils = await makeWorkerUtils({ connectionString: location, maxPoolSize: connectionsMax })
      await utils.migrate()
      return (job) => utils.addJob(name, job)
    },
    async work(location, slots, report) {
      const taskList = { [name]: async (job: unknown) => report(job as Job) }
      return runGraphile({ connectionString: location, concurrency: slots, noHandleSignals: true, taskList })
    },
  },

  DBOS: {
    async open(location) {
      // Creates the tables.
      await launchDbos(location)
      await DBOS.shutdown()
      const systemDatabase = { systemDatabaseUrl: location, systemDatabasePoolSize: connectionsMax }
      const client = await DBOSClient.create({ ...systemDatabase, applicationName })
      return (job) => client.enqueue({ queueName: name, workflowName: name }, job)
    },
    async work(location, slots, report) {
      DBOS.registerWorkflow(async (job: Job) => report(job), { name })
      await launchDbos(location)
      return DBOS.registerQueue(name, { workerConcurrency: slots, minPollingIntervalMs: 100 })
    },
  },

  BullMQ: {
    open: openBull,
    async work(location, slots, report) {
      return new BullWorker<Job>(name, async ({ data }) => report(data), bullOptions(location, slots))
    },
  },

  /** Jobs are executed in processes of the worker's own, as the service does. */
  'BullMQ, sandboxed': {
    open: openBull,
    async work(location, slots, report) {
      const processor = new URL('./sandboxed-processor.ts', import.meta.url)
      const worker = new BullWorker<Job, number>(name, processor, bullOptions(location, slots))
      return worker.on('completed', ({ data }, at) => report(data, at))
    },
  },
}

async function openBull(location: string): Promise<Enqueue> {
  const queue = new BullQueue(name, { connection: { url: location } })
  return (job) => queue.add(name, job, { removeOnComplete: true })
}

function bullOptions(location: string, concurrency: number) {
  return { connection: { url: location, maxRetriesPerRequest: null }, concurrency }
}

const applicationName = 'bench'

function launchDbos(systemDatabaseUrl: string): Promise<void> {
  DBOS.setConfig({ name: applicationName, systemDatabaseUrl, logLevel: 'warn', runAdminServer: false })
  return DBOS.launch()
}
