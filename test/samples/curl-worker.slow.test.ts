/** The worker in bash of the guide executes runs against a real service. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { chmodSync, existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import {
  removeDirectory,
  startTestService,
  type TestAccount,
  type TestService,
  temporaryDirectory,
  until,
} from '../support/service.ts'
import { waitLimits } from '../support/timeouts.ts'

const tools = ['bash', 'curl', 'jq']
const missing = tools.filter((tool) => spawnSync(tool, ['--version']).error !== undefined)
const code = /^```bash\n(.*?)^```/ms.exec(readFileSync('docs/guides/workers.md', 'utf8'))?.[1] ?? ''
const leaseSeconds = 3

let service: TestService
let account: TestAccount
let directory: string
let worker: ChildProcess
let ended: Promise<unknown>
let output = ''

/** A `wc` that does not end before the file `go` exists: the step of the workflow. */
const slowWc = (wc: string) => `#!/bin/sh
touch "${'$'}{0%wc}counting"
until [ -e "${'$'}{0%wc}go" ]; do sleep 0.1; done
exec ${wc} "$@"
`

beforeAll(async () => {
  if (missing.length > 0) return
  service = await startTestService({ worker: false, settings: { LEASE_SECONDS: String(leaseSeconds) } })
  account = await service.createAccount()
  const { value } = await account.createKey({ scopes: ['runs:execute'] })
  directory = temporaryDirectory()
  writeFileSync(join(directory, 'worker.sh'), code)
  const wc = spawnSync('sh', ['-c', 'command -v wc'], { encoding: 'utf8' }).stdout.trim()
  writeFileSync(join(directory, 'wc'), slowWc(wc))
  chmodSync(join(directory, 'wc'), 0o755)
  const env = { PATH: `${directory}:${process.env.PATH}`, API_KEY: value, TMPDIR: directory }
  worker = spawn('bash', [join(directory, 'worker.sh'), service.executionUrl], { env })
  for (const stream of [worker.stdout, worker.stderr]) stream?.on('data', (data) => (output += data))
  ended = new Promise((resolve) => worker.once('exit', (exitCode) => resolve(exitCode)))
  await until('the worker has registered', async () => (await listWorkers()).length > 0)
})

afterAll(async () => {
  worker?.kill('SIGKILL')
  await service?.stop()
  if (directory) removeDirectory(directory)
})

async function request(method: string, path: string, body?: object) {
  const headers = { Authorization: `Bearer ${account.key}`, 'Content-Type': 'application/json' }
  const init = { method, headers, ...(body && { body: JSON.stringify(body) }) }
  return (await fetch(`${service.executionUrl}/v1/execution/${path}`, init)).json()
}

const listWorkers = async () => (await request('GET', 'workers')).data as { name: string; language: string }[]

async function queue(text: string): Promise<string> {
  return (await request('PUT', 'queue-remote/reading-time', { variableData: { text } })).id
}

function finished(runId: string) {
  return until(`run ${runId} has ended`, async () => {
    const run = await request('GET', `runs/${runId}`)
    return ['queued', 'running'].includes(run.status) ? undefined : run
  }).catch((error) => {
    throw new Error(`${error.message} The worker wrote: ${output}`)
  })
}

function events(runId: string) {
  const sql = 'SELECT type, data FROM run_events WHERE run_id = ? ORDER BY sequence'
  return service.rows<{ type: string; data: string }>(sql, runId)
}

test.skipIf(missing.length > 0)(
  `the guide's worker renews leases, stores steps, fails, is cancelled and signs off${missing.length > 0 ? ` (without ${missing})` : ''}`,
  async () => {
    expect(code.trimEnd().split('\n').length).toBeLessThanOrEqual(80)
    expect((await listWorkers())[0]).toMatchObject({ name: 'texts', language: 'bash' })
    const cancelled = await queue('never counted')
    await until('the step executes', () => existsSync(join(directory, 'counting')))
    const [first] = await service.rows<{ lease_expires_at: number }>(
      'SELECT lease_expires_at FROM runs WHERE id = ?',
      cancelled,
    )
    await until('the lease is renewed', async () => {
      const [run] = await service.rows<{ lease_expires_at: number }>(
        'SELECT lease_expires_at FROM runs WHERE id = ?',
        cancelled,
      )
      return (run?.lease_expires_at ?? 0) > (first?.lease_expires_at ?? 0)
    })
    await request('POST', `runs/${cancelled}/cancel`)
    expect(await finished(cancelled)).toMatchObject({ status: 'cancelled', attempts: 1 })

    writeFileSync(join(directory, 'go'), '')
    const run = await finished(await queue('word '.repeat(201)))
    expect(run).toMatchObject({ status: 'succeeded', output: { minutes: 2 }, attempts: 1 })
    const reported = await events(run.id)
    expect(reported.map(({ type }) => type)).toEqual(['status', 'log', 'step', 'status'])
    expect(await finished(await queue(''))).toMatchObject({
      status: 'failed',
      error: { name: 'NoWords', message: 'The text has no words.' },
    })

    worker.kill('SIGTERM')
    expect(await ended).toBe(0)
    expect(await listWorkers()).toEqual([])
    expect(output).toBe('')
  },
  waitLimits.timeout * 4,
)
