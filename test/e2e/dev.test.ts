/** `npm run dev`: the service as its developers run it. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { expect, test } from 'vitest'
import { newPlace } from '../support/store.ts'

test('starts under `node --watch`, whose messages are not taken for those of a process of ours', async (context) => {
  const ports = { DASHBOARD_PORT: '0', EXECUTION_PORT: '0', BROWSER_CONTEXT_PORT: '0', MANAGEMENT_PORT: '0' }
  const env = { ...process.env, ...ports, DATA_DIR: await newPlace(context) }
  const watched = spawn(process.execPath, ['--watch', 'src/main.ts', 'start'], {
    env,
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  const ended = once(watched, 'exit')
  const said: string[] = []
  for await (const line of createInterface({ input: watched.stdout })) {
    said.push(line)
    if (/service ready|Failed running/.test(line)) break
  }
  expect(said.at(-1)).toContain('service ready')
  watched.kill('SIGTERM')
  await ended
})
