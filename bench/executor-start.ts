/** Measures the CPU time of a process that executes runs, until it has loaded a workflow, beside an empty program. */
import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { ProcessReaper } from '../src/domain/workflows/process-reaper.ts'
import { ExecutorProcess } from '../src/worker/executors/executor-process.ts'
import type { Bar } from './bars.ts'
import { processTree } from './separate-processes.ts'

const rounds = 3
/** The CPU time of ended processes is known in hundredths of a second. */
const startsOfEach = 20

export async function measureExecutorStart(): Promise<Bar> {
  const directory = mkdtempSync(join(tmpdir(), 'bench-executor-'))
  writeFileSync(join(directory, 'constant.mjs'), 'export default { run: () => 1 }\n')
  // As the service does for its processes.
  process.env.NODE_COMPILE_CACHE = join(directory, 'cache')
  const values: number[] = []
  try {
    await startExecutor(directory)
    for (let round = 0; round < rounds; round += 1) {
      const executor = await endedCpu(() => startExecutor(directory))
      const node = await endedCpu(async () => void spawnSync(process.execPath, ['-e', '0']))
      values.push(executor / node)
    }
  } finally {
    rmSync(directory, { recursive: true })
  }
  return { name: 'CPU of the start of an executor ÷ node -e 0', store: '', values, atMost: 1.5 }
}

async function startExecutor(directory: string): Promise<void> {
  const reaper = new ProcessReaper({ graceSeconds: 0, filesPrefix: (id) => join(directory, id) })
  const modules = { constant: 'constant.mjs' }
  const before = new Set(processTree([process.pid]))
  const executor = new ExecutorProcess(
    { memoryMegabytesMax: 256, loadSecondsMax: 30 },
    { directory, modules, usesBrowser: false },
    reaper,
  )
  await executor.ready
  executor.kill()
  const isRunning = () => processTree([process.pid]).some((pid) => !before.has(pid))
  reaper.close()
  while (isRunning()) await delay(5)
}

/** The CPU time of the children that end meanwhile, in ticks. */
async function endedCpu(act: () => Promise<void>): Promise<number> {
  // proc_pid_stat(5), after the name: state, ppid … utime, stime, cutime, cstime.
  const read = () => {
    const fields = readFileSync('/proc/self/stat', 'utf8').split(') ').at(-1)?.split(' ') ?? []
    return Number(fields[13]) + Number(fields[14])
  }
  const before = read()
  for (let count = 0; count < startsOfEach; count += 1) await act()
  return read() - before
}
