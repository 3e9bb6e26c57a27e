/** Returns what it can reach of its worker, and what the kernel thinks of it. */
import { openSync, readFileSync } from 'node:fs'
import { defineWorkflow } from 'execution-service/workflow'

function attempt(act: () => unknown): unknown {
  try {
    return act()
  } catch (error) {
    return (error as NodeJS.ErrnoException).code
  }
}

export default defineWorkflow({
  id: 'peek',
  version: '1.0.0',
  title: 'Peek',
  variables: { type: 'object', required: ['directory'], properties: { directory: { type: 'string' } } },
  output: {},
  run: ({ variables }) => ({
    user: [process.getuid?.(), process.getgid?.(), ...(process.getgroups?.() ?? [])],
    parentEnvironment: attempt(() => readFileSync(`/proc/${process.ppid}/environ`, 'latin1')),
    parentMemory: attempt(() => openSync(`/proc/${process.ppid}/mem`, 'r')),
    parentSignal: attempt(() => process.kill(process.ppid, 0)),
    dataDirectory: attempt(() => openSync(`${variables.directory}/service.db`, 'r')),
    noNewPrivileges: /^NoNewPrivs:\t(\d)/m.exec(readFileSync('/proc/self/status', 'utf8'))?.[1],
    memoryScore: readFileSync('/proc/self/oom_score_adj', 'latin1').trim(),
  }),
})
