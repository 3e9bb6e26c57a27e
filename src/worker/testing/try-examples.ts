/** Runs each workflow of a snapshot once, with its first example, before the snapshot is deployed. */
import { fileURLToPath } from 'node:url'
import { runStep } from '../../domain/deployments/build-snapshot.ts'
import { DeploymentFiles, temporaryParentOf } from '../../domain/deployments/deployment-files.ts'
import type { DeployedWorkflow, Snapshot } from '../../domain/deployments/snapshot.ts'
import type { Identity } from '../../domain/workflows/executor-identity.ts'
import { type Mark, ProcessReaper } from '../../domain/workflows/process-reaper.ts'
import { WorkflowError } from '../../domain/workflows/workflow.ts'

export interface Trial {
  workflow: DeployedWorkflow
  /** Why the run failed; `null` if it succeeded, `undefined` if the workflow has no valid example. */
  failure: string | null | undefined
}

/** For the start of the process, and of a browser, and for the grace after the time limit. */
const overheadSeconds = 60

/**
 * @param directory where packages with native code may be installed.
 * @param identity the user of the processes, if not that of this one.
 */
export async function* tryExamples(snapshot: Snapshot, directory: string, identity: Identity): AsyncGenerator<Trial> {
  const files = new DeploymentFiles(identity, 'build')
  const reaper = new ProcessReaper({ graceSeconds: 0, identity, filesPrefix: () => files.filesPrefix })
  try {
    const target = await files.write('snapshot', snapshot, [directory])
    for (const workflow of snapshot.workflows) {
      yield { workflow, failure: await findFailure(workflow, target, identity, reaper.mark(temporaryParentOf(target))) }
    }
  } finally {
    reaper.close()
    await files.close().catch(() => {})
  }
}

const processModule = fileURLToPath(new URL('./try-process.ts', import.meta.url))

/** Runs in a separate process, which the code of the workflow can end. */
async function findFailure(workflow: DeployedWorkflow, target: string, identity: Identity, mark: Mark) {
  const example = workflow.examples?.variables[0]
  if (example === undefined) return undefined
  const seconds = workflow.timeLimitSeconds + overheadSeconds
  const { BROWSER_PATH } = process.env
  try {
    const message = await runStep('try', [target, workflow.module], {
      ...{ module: processModule, identity, mark, seconds, input: JSON.stringify(example.value) },
      environment: BROWSER_PATH === undefined ? {} : { BROWSER_PATH },
      onTimeout: () => new WorkflowError(`Its process did not end within ${seconds} seconds.`),
      onEnd: (code, signal) => new WorkflowError(`Its process ended (${signal ?? `exit code ${code}`}).`),
    })
    if (message.kind === 'tried') return message.failure === null ? null : String(message.failure)
    return 'Its process has sent an invalid report.'
  } catch (error) {
    if (error instanceof WorkflowError) return error.message
    throw error
  }
}
