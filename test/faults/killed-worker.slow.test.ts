/** A worker that is killed leaves nothing behind, also when no other starts: no executor, no browser, no file. */
import { chmodSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { expect, test, vi } from 'vitest'
import { findHostProcess } from '../support/browser-host.ts'
import { queueRun } from '../support/domain.ts'
import { findMarkedProcesses, waitForProcessEnd } from '../support/processes.ts'
import { writtenSnapshot } from '../support/snapshots.ts'
import { sqlite } from '../support/store-kinds.ts'
import { waitLimits } from '../support/timeouts.ts'
import { openInstallation, startWorkerProcess } from '../support/worker.ts'

/** Opens a page, starts a process in a separate group, writes a temporary file and its process id, and does not end. */
const run = `async run({ variables, browser }) {
  const page = await (await browser()).newPage()
  await page.goto('data:text/html,<title>Open</title>')
  spawn('sleep', ['1000'], { detached: true, stdio: 'ignore' }).unref()
  writeFileSync(tmpdir() + '/left', '')
  appendFileSync(variables.file, process.pid + '\\n')
  if (variables.blocks) for (;;);
  await new Promise(() => setInterval(() => {}, 1000))
}`

/** The files of deployments are root's if executors have another user, and are removed by a later worker. */
const users: readonly (readonly [user: string, settings: NodeJS.ProcessEnv, stays?: RegExp])[] = [
  ['the worker', {}],
  ...(process.getuid?.() === 0
    ? ([
        ['EXECUTOR_UID', { EXECUTOR_UID: '61400' }, /^execution-service-deployments-/],
        ['EXECUTOR_UIDS', { EXECUTOR_UIDS: '61410-61419' }, /^execution-service-deployments-/],
      ] as const)
    : []),
]

test.for(users)('every process of a killed worker ends, and its files are removed (as %s)', async (row, test) => {
  const [, settings, stays] = row
  const temporary = mkdtempSync('/tmp/test-')
  test.onTestFinished(() => rmSync(temporary, { recursive: true, force: true }))
  chmodSync(temporary, 0o1777)
  const module = `import { spawn } from 'node:child_process'
    import { appendFileSync, writeFileSync } from 'node:fs'
    import { tmpdir } from 'node:os'
    export default { ${run} }`
  const snapshot = writtenSnapshot({ browse: { usesBrowser: true, module } })
  const { domain, principal, file: exchanged } = await openInstallation(test, sqlite, snapshot)
  const worker = await startWorkerProcess(test, domain, { TMPDIR: temporary, ...settings })
  const file = exchanged('pids')
  writeFileSync(file, '')
  chmodSync(file, 0o666)
  chmodSync(dirname(file), 0o711)
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
  expect(marked.length).toBeGreaterThanOrEqual(6)
  worker.kill('SIGKILL')
  for (const pid of marked) await waitForProcessEnd(pid)
  await vi.waitFor(() => {
    const left = readdirSync(temporary)
    expect(left.filter((name) => !stays?.test(name))).toEqual([])
    for (const name of left) expect(readdirSync(join(temporary, name, 'tmp'))).toEqual([])
  }, waitLimits)
})

function readLines(file: string): string[] {
  try {
    return readFileSync(file, 'utf8').trim().split('\n')
  } catch {
    return []
  }
}
