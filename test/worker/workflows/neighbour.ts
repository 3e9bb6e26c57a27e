/** Waits with a secret; or, with the process and directory of such a run, returns what it can reach of it. */
import { openSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { defineWorkflow } from 'execution-service/workflow'

function attempt(act: () => unknown): unknown {
  try {
    return act()
  } catch (error) {
    return (error as NodeJS.ErrnoException).code
  }
}

export default defineWorkflow({
  id: 'neighbour',
  version: '1.0.0',
  title: 'Look at a neighbour',
  variables: {
    type: 'object',
    properties: { pid: { type: 'integer' }, directory: { type: 'string' } },
  },
  output: {},
  run: async ({ variables: { pid, directory }, log, signal }) => {
    if (pid === undefined || directory === undefined) {
      writeFileSync(`${tmpdir()}/secret`, 'a secret')
      log(`${process.pid} ${tmpdir()} ${process.getuid?.()}`)
      await new Promise((resolve) => signal.addEventListener('abort', resolve))
      return null
    }
    return {
      environment: attempt(() => readFileSync(`/proc/${pid}/environ`, 'latin1')),
      memory: attempt(() => openSync(`/proc/${pid}/mem`, 'r')),
      signal: attempt(() => process.kill(pid, 0)),
      list: attempt(() => readdirSync(directory)),
      file: attempt(() => readFileSync(`${directory}/secret`, 'utf8')),
      mode: attempt(() => (statSync(tmpdir()).mode & 0o777).toString(8)),
      uid: process.getuid?.(),
    }
  },
})
