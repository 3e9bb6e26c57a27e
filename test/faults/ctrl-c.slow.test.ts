/** Ctrl-C in a terminal, which signals all processes of the service at the same time, some of them twice. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { expect, onTestFinished, test } from 'vitest'
import { newInstallation } from '../support/installation.ts'
import { until } from '../support/service.ts'

/** How one Ctrl-C arrives at the process group of the service. */
const presses = {
  'reaches all of them twice': async (pid: number) => {
    process.kill(-pid, 'SIGINT')
    process.kill(-pid, 'SIGINT')
  },
  'reaches the service later than its worker': async (pid: number) => {
    process.kill(pid, 'SIGSTOP')
    process.kill(-pid, 'SIGINT')
    // After a second, another signal counts as a second Ctrl-C.
    await setTimeout(1500)
    process.kill(pid, 'SIGCONT')
  },
}

test.for(Object.entries(presses))(
  'one Ctrl-C that %s lets requests and runs finish, and the next start continues returned runs',
  async ([, press]) => {
    const installation = await newInstallation({ SHUTDOWN_SECONDS: '3' })
    onTestFinished(installation.remove)
    const { key } = await installation.createAccount()
    const headers = { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json' }
    const file = join(installation.dataDirectory, 'release')
    const first = await installation.start()
    const queue = `${first.executionUrl}/v1/execution/queue-remote/hold`
    const queued = await fetch(queue, { method: 'PUT', headers, body: JSON.stringify({ variableData: { file } }) })
    const { id } = (await queued.json()) as { id: string }
    const read = async (url: string) => (await fetch(`${url}/v1/execution/runs/${id}`, { headers })).json()
    await until('the run is running', async () => (await read(first.executionUrl)).status === 'running')

    await press(first.pid)
    expect(await first.ended).toEqual({ code: 0, signal: null })
    for (const msg of ['service stopped', 'worker stopped']) expect(first.log.map((line) => line.msg)).toContain(msg)
    await until('nothing of it is left', () => !first.anyAlive())

    writeFileSync(file, '')
    const second = await installation.start()
    const run = await until('the run has ended', async () => {
      const now = await read(second.executionUrl)
      return now.finishedAt && now
    })
    expect(run).toMatchObject({ status: 'succeeded', attempts: 2 })
  },
)
