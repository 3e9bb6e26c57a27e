import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Run } from '../../src/client/index.ts'
import { type Installation, newInstallation, type ServiceProcess } from '../support/installation.ts'
import { until } from '../support/service.ts'
import { callerOf, clientOf, collect, fileIn, queue, read, untilStatus } from './caller.ts'

let installation: Installation
let service: ServiceProcess

beforeAll(async () => {
  installation = await newInstallation({ LEASE_SECONDS: '3' })
  service = await installation.start()
})
afterAll(() => installation.remove())

const newCaller = () => callerOf(installation, service)
const newFile = () => fileIn(installation)

describe('a caller', () => {
  test('queues a run, follows its events live, and reads its output', async () => {
    const { client } = await newCaller()
    const { file, release } = newFile()
    const { run, response } = await queue(client, 'hold', { file })
    expect(response.status).toBe(202)
    const seen: string[] = []
    for await (const event of client.runs.events(run.id)) {
      seen.push(event.type === 'status' ? event.status : event.type === 'log' ? event.message : event.type)
      // The run goes on only after its first events were read.
      if (seen.at(-1) === 'Holding') release()
    }
    expect(seen).toEqual(['queued', 'running', 'Holding', 'Released', 'succeeded'])
    expect(await read(client, run)).toMatchObject({ status: 'succeeded', output: 'released', attempts: 1 })
    const listed = await client.listRuns({ params: { query: { status: ['succeeded', 'failed'] } } })
    expect(listed.data?.data.map(({ id }) => id)).toEqual([run.id])
  })

  test('resumes a stream that breaks repeatedly, without missing or repeated events', async () => {
    const { client } = await newCaller()
    const { file, release } = newFile()
    const { run } = await queue(client, 'hold', { file })
    const seen: number[] = []
    const eventsLeft = () => client.runs.events(run.id, { after: seen.at(-1) })
    for (let lost = 0; lost < 3; lost++) {
      for await (const { sequence } of eventsLeft()) {
        seen.push(sequence)
        break
      }
    }
    release()
    for (const { sequence } of await collect(eventsLeft())) seen.push(sequence)
    expect(seen).toEqual([1, 2, 3, 4, 5])
    expect(await collect(eventsLeft())).toEqual([])
  })

  test('waits for a run that finishes in time, and gets a running one otherwise', async () => {
    const { client } = await newCaller()
    const { file, release } = newFile()
    const quick = await queue(client, 'greet', { name: 'Ada' }, {}, { Prefer: 'wait=30' })
    expect(quick.response.status).toBe(200)
    expect(quick.run.output).toEqual({ greeting: 'Hello, Ada!' })
    const slow = await queue(client, 'hold', { file }, {}, { Prefer: 'wait=1' })
    expect(slow.response.status).toBe(202)
    expect(slow.response.headers.get('Preference-Applied')).toBe('wait=1')
    expect(slow.run.finishedAt).toBeNull()
    release()
    await untilStatus(client, slow.run, 'succeeded')
  })

  test('delays a run, which does not start earlier', async () => {
    const { client } = await newCaller()
    const { run } = await queue(client, 'greet', { name: 'Ada' }, { delaySeconds: 1 })
    expect(run.waitingFor).toBe('delay')
    const ended = await untilStatus(client, run, 'succeeded')
    expect(Date.parse(ended.startedAt ?? '') - Date.parse(ended.createdAt)).toBeGreaterThanOrEqual(1000)
  })

  test('has runs started by priority, then by age, and expired ones not at all', async () => {
    const { client } = await newCaller()
    const { file, release } = newFile()
    const { run: first } = await queue(client, 'single', { file })
    await untilStatus(client, first, 'running')
    const { run: late } = await queue(client, 'single', { file }, { priority: 10, expiresInSeconds: 1 })
    const queued: Run[] = []
    for (const priority of [0, 5, -5, 5]) queued.push((await queue(client, 'single', { file }, { priority })).run)
    for (const run of queued) expect((await read(client, run)).waitingFor).toBe('concurrencyLimit')
    const expired = await untilStatus(client, late, 'expired')
    expect(expired).toMatchObject({ reason: 'notStartedInTime', attempts: 0, startedAt: null })
    release()
    const ended = await Promise.all(queued.map((run) => untilStatus(client, run, 'succeeded')))
    const inOrder = ended.toSorted((a, b) => Date.parse(a.startedAt ?? '') - Date.parse(b.startedAt ?? ''))
    const [normal, urgent, unimportant, urgentToo] = queued
    expect(inOrder.map(({ id }) => id)).toEqual([urgent, urgentToo, normal, unimportant].map((run) => run?.id))
  })

  test('cancels a queued run, which never starts, and a running run, which ends', async () => {
    const { client } = await newCaller()
    const { run: queued } = await queue(client, 'greet', { name: 'Ada' }, { delaySeconds: 3600 })
    const { run: running } = await queue(client, 'hold', { file: newFile().file })
    await untilStatus(client, running, 'running')
    for (const { id } of [queued, running]) await client.cancelRun({ params: { path: { runId: id } } })
    expect(await read(client, queued)).toMatchObject({ status: 'cancelled', attempts: 0 })
    const ended = await untilStatus(client, running, 'cancelled')
    expect(ended).toMatchObject({ reason: 'cancelRequested', cancelRequested: true, attempts: 1, output: null })
  })
})

describe('an operator', () => {
  test('deletes a key in use: it is refused immediately, and its event stream ends', async () => {
    const { account, client } = await newCaller()
    const { file, release } = newFile()
    const { id, value } = await account.createKey()
    const other = clientOf(service, value)
    const { run } = await queue(other, 'hold', { file })
    const seen: string[] = []
    const follow = async () => {
      for await (const event of other.runs.events(run.id)) {
        seen.push(event.type === 'log' ? event.message : event.type)
        if (seen.at(-1) === 'Holding') await deleteKey()
      }
    }
    const deleteKey = async () => {
      const deleted = await installation.runCommand('keys', 'delete', id, '--account', account.id)
      expect(deleted).toMatchObject({ code: 0, stdout: 'Deleted. Requests with this key are refused from now on.\n' })
      const refused = await other.getRun({ params: { path: { runId: run.id } } })
      expect(refused.error).toMatchObject({ status: 401, title: 'Unauthorized' })
      // Later events are not sent to the holder of the deleted key.
      release()
    }
    await expect(follow()).rejects.toMatchObject({ status: 401, title: 'Unauthorized' })
    expect(seen).toEqual(['status', 'status', 'Holding'])
    await untilStatus(client, run, 'succeeded')
  })

  test('prints only the key on standard output, for scripts, and advice on standard error', async () => {
    const { id } = JSON.parse(
      (await installation.runCommand('accounts', 'create', '--name', 'Script', '--json')).stdout,
    )
    const { stdout, stderr } = await installation.runCommand('keys', 'create', '--name', 'ci', '--account', id)
    expect((await clientOf(service, stdout.trim()).listRuns()).response.status).toBe(200)
    expect(stderr).toContain('This is the API key "ci". Copy it now')
  })

  test('reads liveness, readiness and metrics', async () => {
    const { client } = await newCaller()
    await client.listRuns()
    const get = async (path: string) => {
      const response = await fetch(`${service.managementUrl}${path}`)
      return { status: response.status, type: response.headers.get('Content-Type'), text: await response.text() }
    }
    expect(await get('/livez')).toEqual({ status: 200, type: 'text/plain; charset=utf-8', text: 'alive\n' })
    expect(await get('/readyz')).toEqual({ status: 200, type: 'text/plain; charset=utf-8', text: 'ready\n' })
    // Includes the worker's metrics, unless it is too busy to reply.
    const metrics = await until('the metrics include those of the worker', async () => {
      const response = await get('/metrics')
      expect(response.status).toBe(200)
      return response.text.includes('process="worker"') && response
    })
    expect(metrics.text).toMatch(
      /execution_service_request_duration_seconds_count\{surface="execution",operation="listRuns",status="200",process="service"\} [1-9]/,
    )
    expect(metrics.text).toMatch(/^execution_service_workers\{process="service"\} 1$/m)
    expect(metrics.text).toMatch(/^process_resident_memory_bytes\{process="worker"\} \d+$/m)
    // Counters of events that have not happened are present, too.
    const never = 'workflow="greet",status="failed",reason="outputInvalid"'
    for (const process of ['service', 'worker'])
      expect(metrics.text).toContain(`execution_service_finished_runs_total{${never},process="${process}"} 0\n`)
  })

  test('sees a killed worker replaced, and its run finished by the new one', async () => {
    const { client } = await newCaller()
    const { file, release } = newFile()
    const { run } = await queue(client, 'hold', { file })
    await untilStatus(client, run, 'running')
    const workers = () => service.log.filter(({ msg }) => msg === 'worker ready').map(({ pid }) => pid as number)
    const before = workers()
    process.kill(before.at(-1) as number, 'SIGKILL')
    for (const path of ['/livez', '/readyz']) expect((await fetch(`${service.managementUrl}${path}`)).status).toBe(200)
    const { run: meanwhile } = await queue(client, 'greet', { name: 'Ada' })
    await until('another worker is ready', () => workers().length > before.length)
    release()
    await untilStatus(client, meanwhile, 'succeeded')
    expect(await untilStatus(client, run, 'succeeded')).toMatchObject({ attempts: 2, output: 'released' })
  })
})
