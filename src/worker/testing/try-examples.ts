/** Runs each workflow of a snapshot once, with its first example, before the snapshot is deployed. */
import { mkdirSync } from 'node:fs'
import { Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { pathToFileURL } from 'node:url'
import { type Message, messageStream } from '../../domain/deployments/build-process.ts'
import { runStep } from '../../domain/deployments/build-snapshot.ts'
import { DeploymentFiles, temporaryParentOf } from '../../domain/deployments/deployment-files.ts'
import type { DeployedWorkflow, Snapshot } from '../../domain/deployments/snapshot.ts'
import type { Identity } from '../../domain/workflows/executor-identity.ts'
import { leaseBuilder } from '../../domain/workflows/executor-users.ts'
import { definitionIn } from '../../domain/workflows/module-definition.ts'
import { type Mark, ProcessReaper } from '../../domain/workflows/process-reaper.ts'
import { declaresValues, WorkflowError } from '../../domain/workflows/workflow.ts'
import { describeCauses } from '../../storage/error-causes.ts'

export interface Trial {
  workflow: DeployedWorkflow
  /** Why the run failed; `null` if it succeeded, `undefined` if the workflow has no valid example. */
  failure: string | null | undefined
}

/** What the process of a run reads. */
interface TrialInput {
  variables: Record<string, unknown>
  /** Examples by wait. A wait without one times out. */
  answers: Record<string, unknown>
  /** Examples of outputs by workflow, for calls. */
  outputs: Record<string, unknown>
}

/** For the start of the process, and of a browser, and for the grace after the time limit. */
const overheadSeconds = 60

/**
 * @param directory where packages with native code may be installed.
 * @param builder the user of the processes, if not that of this one.
 */
export async function* tryExamples(snapshot: Snapshot, directory: string, builder: Identity): AsyncGenerator<Trial> {
  const user = leaseBuilder(builder)
  const { identity } = user
  const files = new DeploymentFiles(identity, 'build')
  const reaper = new ProcessReaper({ graceSeconds: 0, identity, filesPrefix: () => files.filesPrefix })
  try {
    const target = await files.write('snapshot', snapshot, [directory])
    const outputs = Object.fromEntries(
      snapshot.workflows.flatMap(({ id, examples }) => (examples?.outputs ?? []).map((output) => [id, output])),
    )
    for (const workflow of snapshot.workflows) {
      const { variables: [example] = [], answers = {} } = workflow.examples ?? {}
      // Only accounts have what it declares.
      const input = !declaresValues(workflow) &&
        example && { variables: example.value as TrialInput['variables'], answers, outputs }
      const mark = reaper.mark(temporaryParentOf(target))
      yield { workflow, failure: input ? await findFailure(workflow, input, target, identity, mark) : undefined }
    }
  } finally {
    reaper.close()
    await files.close().catch(() => {})
    user.release()
  }
}

/** Runs in a separate process, which the code of the workflow can end. */
async function findFailure(
  workflow: DeployedWorkflow,
  input: TrialInput,
  target: string,
  identity: Identity,
  mark: Mark,
): Promise<string | null> {
  const seconds = workflow.timeLimitSeconds + overheadSeconds
  const { BROWSER_PATH } = process.env
  try {
    const message = await runStep('try', [target, workflow.module], {
      ...{ module: import.meta.filename, identity, mark, seconds, input: JSON.stringify(input) },
      environment: BROWSER_PATH === undefined ? {} : { BROWSER_PATH },
      onTimeout: () => new WorkflowError(`Its process did not end within ${seconds} seconds.`),
      onEnd: ({ code, signal }) => new WorkflowError(`Its process ended (${signal ?? `exit code ${code}`}).`),
    })
    if (message.kind === 'tried') return message.failure === null ? null : String(message.failure)
    return 'Its process has sent an invalid report.'
  } catch (error) {
    if (error instanceof WorkflowError) return error.message
    throw error
  }
}

// The process that runs a workflow of a snapshot once. Arguments: the step, the directory and the module.

async function runExample(path: string): Promise<string | null> {
  const { variables, answers, outputs } = JSON.parse(await text(process.stdin)) as TrialInput
  const { runWorkflow } = await import('./run-workflow.ts')
  const workflow = definitionIn(await import(pathToFileURL(path).href)) as Parameters<typeof runWorkflow>[0]
  const unanswered = Object.fromEntries(Object.keys(workflow.waits ?? {}).map((name) => [name, undefined]))
  const { status, error, reason } = await runWorkflow(workflow, {
    ...{ variables, retry: true, browser: 'chromium', answers: { ...unanswered, ...answers } },
    calls: (_, { workflowId }) => {
      if (workflowId !== null && Object.hasOwn(outputs, workflowId)) return outputs[workflowId]
      throw new Error(`No workflow of the directory has the ID "${workflowId}" and an example of its output.`)
    },
  })
  if (status === 'succeeded') return null
  return error ? `${error.name}: ${error.message}` : `${status} (${reason})`
}

if (import.meta.main) {
  const [, directory = '', module = ''] = process.argv.slice(2)
  mkdirSync(tmpdir(), { recursive: true, mode: 0o700 })
  const pipe = new Socket({ fd: messageStream, readable: false, writable: true })
  pipe.on('error', () => process.exit())
  const failure = await runExample(join(directory, module)).catch(describeCauses)
  pipe.write(`${JSON.stringify({ kind: 'tried', failure } satisfies Message)}\n`)
}
