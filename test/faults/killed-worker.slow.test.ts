/** A worker that is killed leaves nothing behind, also when no other starts: no executor, no browser, no file. */
import { readFileSync } from 'node:fs'
import { expect, test, vi } from 'vitest'
import { findHostProcess } from '../support/browser-host.ts'
import { queueRun } from '../support/domain.ts'
import { findMarkedProcesses, waitForProcessEnd } from '../support/processes.ts'
import { writtenSnapshot } from '../support/snapshots.ts'
import { sqlite } from '../support/store-kinds.ts'
import { waitLimits } from '../support/timeouts.ts'
import { openInstallation, startWorkerProcess } from '../support/worker.ts'

/** Opens a page, starts a process in a group of its own, writes its process id, and does not end. */
const run = `async run({ variables, browser }) {
  const page = await (await browser()).newPage()
  await page.goto('data:text/html,<title>Open</title>')
  spawn('sleep', ['1000'], { detached: true, stdio: 'ignore' }).unref()
  appendFileSync(variables.file, process.pid + '\\n')
  if (variables.blocks) for (;;);
  await new Promise(() => setInterval(() => {}, 1000))
}`

test.for([1, 2, 3])('every process of a killed worker ends (round %i)', async (_, test) => {
  const module = `import { spawn } from 'node:child_process'
    import { appendFileSync } from 'node:fs'
    export default { ${run} }`
  const snapshot = writtenSnapshot({ browse: { usesBrowser: true, module } })
  const { domain, principal, file: exchanged } = await openInstallation(test, sqlite, snapshot)
  const worker = await startWorkerProcess(test, domain)
  const file = exchanged('pids')
  for (const blocks of [true, false]) {
    await queueRun(domain, principal, { workflowId: 'browse', variables: { file, blocks } })
  }
  const executors = await vi.waitUntil(() => {
    const lines = readLines(file)
    return lines.length === 2 && lines.map(Number)
  }, waitLimits)
  const host = findHostProcess(worker.pid)
  const marked = [...findMarkedProcesses(executors[0] ?? 0), ...findMarkedProcesses(host)]
  // Two executors, each with its child, the browser's host, and the browser.
  expect(marked).toEqual(expect.arrayContaining([...executors, host]))
  expect(marked.length).toBeGreaterThan(6)
  worker.kill('SIGKILL')
  for (const pid of marked) await waitForProcessEnd(pid)
})

function readLines(file: string): string[] {
  try {
    return readFileSync(file, 'utf8').trim().split('\n')
  } catch {
    return []
  }
}
