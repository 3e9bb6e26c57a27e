/** Reads the definitions of all workflows in a child process, so that their code never runs in the API's process. */
import { fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { environmentWithoutSecrets } from '../../config.ts'
import type { Identity } from './executor-identity.ts'
import { loadWorkflows } from './load-workflows.ts'
import { loadExitError, loadSecondsMax, loadTimeoutError, type Workflow, WorkflowError } from './workflow.ts'

/** The child's message. */
type Description = { workflows: string } | { error: string }

/** @param directory undefined when WORKFLOWS_DIR is not set. @throws {WorkflowError} */
export async function describeWorkflows(
  directory: string | undefined,
  secondsMax = loadSecondsMax,
  identity?: Identity,
): Promise<Workflow[]> {
  if (directory === undefined) return []
  // Output of the modules goes to stderr: stdout is for logs and for the output of commands.
  const stdio = ['inherit', 2, 'inherit', 'ipc'] as const
  const env = environmentWithoutSecrets(process.env)
  const child = fork(fileURLToPath(import.meta.url), [directory], { ...identity, env, stdio: [...stdio] })
  let timer: NodeJS.Timeout | undefined
  const description = await new Promise<Description>((resolve, reject) => {
    child.on('message', (message: object) => {
      // Under `node --watch`, Node.js sends messages to the parent too.
      if ('workflows' in message || 'error' in message) resolve(message as Description)
    })
    child.once('error', reject)
    // Not 'exit', which may precede the message.
    child.once('close', (code, signal) => {
      reject(loadExitError(directory, signal ? `signal ${signal}` : `exit code ${code}`))
    })
    timer = setTimeout(() => {
      reject(loadTimeoutError(directory, secondsMax))
      child.kill('SIGKILL')
    }, secondsMax * 1000)
  }).finally(() => clearTimeout(timer))
  if ('error' in description) throw new WorkflowError(description.error)
  return JSON.parse(description.workflows)
}

async function describe(directory: string): Promise<Description> {
  try {
    const workflows = [...(await loadWorkflows(directory)).values()]
    // Loaded here only: the detector of unsafe patterns takes up to 65 MB.
    const { requireFastSchemas } = await import('./schema-speed.ts')
    for (const workflow of workflows) requireFastSchemas(workflow)
    return { workflows: JSON.stringify(workflows) }
  } catch (error) {
    if (error instanceof WorkflowError) return { error: error.message }
    throw error
  }
}

if (import.meta.main) process.send?.(await describe(process.argv[2] ?? ''), () => process.exit())
