/** The service is killed and stopped: acknowledged runs survive. */
import { describe, expect, test } from 'vitest'
import { type ExecutionClient, type Run, unwrap } from '../../src/client/index.ts'
import { readConfig } from '../../src/config/config.ts'
import { openStore } from '../../src/domain/installation.ts'
import { until } from '../support/service.ts'
import { clientOf, collect, fileIn, ownInstallation, queue, read, untilStatus } from './caller.ts'

/** The final statuses that the run has reached. */
async function endings(client: ExecutionClient, run: Pick<Run, 'id'>): Promise<string[]> {
  const events = await collect(client.runs.events(run.id))
  const statuses = events.flatMap((event) => (event.type === 'status' ? [event.status] : []))
  return statuses.filter((status) => status !== 'queued' && status !== 'running')
}

// Concurrent, because they mostly wait for leases and for processes to end.
describe.concurrent('the service', () => {
  test('keeps every acknowledged run when it is killed, and finishes each once', async (context) => {
    const installation = await ownInstallation(context)
    const killed = await installation.start()
    const account = await installation.createAccount()
    const acknowledged: string[] = []
    const caller = async () => {
      const client = clientOf(killed, account.key, { retries: 0 })
      for (;;) {
        const { run } = await queue(client, 'greet', { name: 'Ada' })
        acknowledged.push(run.id)
      }
    }
    const callers = Array.from({ length: 8 }, () => caller().catch(() => {}))
    await until('60 runs are acknowledged', () => acknowledged.length >= 60)
    await killed.killAll()
    await Promise.all(callers)

    const client = clientOf(await installation.start(), account.key)
    for (const id of acknowledged) {
      await untilStatus(client, { id }, 'succeeded')
      expect(await endings(client, { id })).toEqual(['succeeded'])
    }
  })

  test('completes requests in flight when it stops, and returns unfinished runs to the queue', async (context) => {
    const installation = await ownInstallation(context, { SHUTDOWN_SECONDS: '5' })
    const stopped = await installation.start()
    const account = await installation.createAccount()
    const client = clientOf(stopped, account.key)
    const { file, release } = fileIn(installation)
    const waiting = Array.from({ length: 10 }, () => queue(client, 'hold', { file }, {}, { Prefer: 'wait=30' }))
    const listed = await until('every call has its run', async () => {
      const runs = (await client.listRuns({ params: { query: { workflowId: 'hold' } } })).data?.data ?? []
      return runs.length === 10 && runs.some(({ status }) => status === 'running') && runs
    })
    const running = listed.find(({ status }) => status === 'running') as Run
    const stream = unwrap(await client.streamRunEvents({ params: { path: { runId: running.id } } }))?.getReader()
    expect(new TextDecoder().decode((await stream?.read())?.value)).toContain('"status":"queued"')

    const ended = stopped.stop()
    const readiness = async () => (await fetch(`${stopped.managementUrl}/readyz`)).status
    await until('the service says that it is not ready', async () => (await readiness()) === 503)
    for (const { run, response } of await Promise.all(waiting)) {
      expect(response.status).toBe(202)
      expect(['queued', 'running']).toContain(run.status)
    }
    // The stream ends in order: a reset would throw here.
    await until('the stream has ended', async () => (await stream?.read())?.done)
    expect(await ended).toEqual({ code: 0, signal: null })
    await until('no process is left', () => !stopped.anyAlive())

    const again = clientOf(await installation.start(), account.key)
    expect(await read(again, running)).toMatchObject({ finishedAt: null })
    release()
    for (const run of listed) {
      await untilStatus(again, run, 'succeeded')
      expect(await endings(again, run)).toEqual(['succeeded'])
    }
  })

  test('lets its runs finish within SHUTDOWN_SECONDS when it stops', async (context) => {
    const installation = await ownInstallation(context, { SHUTDOWN_SECONDS: '15' })
    const stopped = await installation.start()
    const client = clientOf(stopped, (await installation.createAccount()).key)
    const { file, release } = fileIn(installation)
    const { run } = await queue(client, 'hold', { file })
    await untilStatus(client, run, 'running')
    const ended = stopped.stop()
    await until('the service is stopping', () => stopped.log.some(({ msg }) => msg === 'service stopping'))
    release()
    expect(await ended).toEqual({ code: 0, signal: null })
    const store = await openStore(readConfig(installation.settings))
    const rows = await store.read.all('SELECT id, status, attempts, output FROM runs', [])
    await store.close()
    expect(rows).toEqual([{ id: run.id, status: 'succeeded', attempts: 1, output: '"released"' }])
  })
})
