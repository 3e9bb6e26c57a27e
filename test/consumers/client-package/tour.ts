/** A consumer's program that needs neither Node nor a browser, and lines that must not compile. */
import {
  createBrowserContextClient,
  createExecutionClient,
  ProblemError,
  type Result,
  type Run,
  type StorageState,
  unwrap,
} from 'execution-service-client'

export interface Surfaces {
  executionUrl: string
  browserContextUrl: string
  apiKey: string
}

/** Uses every feature of the client and returns the results. */
export async function tour({ executionUrl, browserContextUrl, apiKey }: Surfaces) {
  const drifts: string[] = []
  const onDrift = ({ document }: { document: string }) => drifts.push(document)
  const execution = createExecutionClient({ baseUrl: executionUrl, apiKey, retryWaitSeconds: 0.05, onDrift })
  const browserContext = createBrowserContextClient({ baseUrl: browserContextUrl, apiKey, timeoutSeconds: 10, onDrift })

  const greeted: Result<Run> = await execution.runs.queueAndWait('greet', { name: 'Ada' })
  if (greeted.error) return { failed: greeted.error.detail }
  const params = { path: { runId: greeted.data.id } }

  const events: string[] = []
  for await (const event of execution.runs.events(greeted.data.id)) {
    events.push(event.type === 'status' ? event.status : event.type)
  }

  const header = { Prefer: 'wait=10' }
  const printed = unwrap(
    await execution.queueRemoteRun({ params: { path: { workflowId: 'print' }, header }, body: { variableData: {} } }),
  )
  const artifact = { path: { runId: printed.id, artifactName: 'hello.txt' } }
  const file: Blob = unwrap(await execution.getRunArtifact({ params: artifact }))
  const bytes: ArrayBuffer = unwrap(await execution.getRunArtifact({ params: artifact, parseAs: 'arrayBuffer' }))

  const workflowIds: string[] = []
  for await (const { workflowId } of execution.runs.list({ limit: 1, status: 'succeeded' }))
    workflowIds.push(workflowId)

  const created = unwrap(await browserContext.createBrowserContext({ body: { name: 'Shop' } }))
  const context = { path: { browserContextId: created.id } }
  const state: StorageState = unwrap(await browserContext.getStorageState({ params: context }))
  const names: string[] = []
  for await (const page of browserContext.browserContexts.list().pages())
    names.push(...page.data.map(({ name }) => name))
  const deletionResult: undefined = unwrap(await browserContext.deleteBrowserContext({ params: context }))

  const withUnknownKey = createExecutionClient({
    baseUrl: executionUrl,
    apiKey: '00000000-0000-4000-8000-000000000000',
  })
  const refused = await withUnknownKey.getRun({ params })
  const missing = await browserContext.getBrowserContext({ params: context })
  const waited = await execution.runs.wait(greeted.data.id, { timeoutSeconds: 10 })

  return {
    output: greeted.data.output,
    events,
    files: [await file.text(), bytes.byteLength],
    workflowIds,
    state,
    names,
    nothing: deletionResult === undefined,
    refused: refused.error?.title,
    missing: missing.error?.type,
    waited: waited.data?.status,
    thrown: await thrownBy(() => unwrap(missing)),
    drifts,
  }
}

async function thrownBy(act: () => unknown): Promise<string> {
  try {
    act()
    return 'nothing'
  } catch (thrown) {
    return thrown instanceof ProblemError ? `${thrown.name} ${thrown.status}` : 'something else'
  }
}

/** Never called: the compiler must reject each line. */
export async function rejectedByCompiler(execution: ReturnType<typeof createExecutionClient>) {
  // @ts-expect-error: the API key is missing
  createExecutionClient({ baseUrl: '' })
  // @ts-expect-error: the run's id is missing.
  await execution.getRun()
  // @ts-expect-error: there is no such filter.
  await execution.listRuns({ params: { query: { state: 'queued' } } })
  // @ts-expect-error: there is no such status.
  execution.runs.list({ status: 'done' })
  // @ts-expect-error: the body has no such member.
  await execution.queueRemoteRun({ params: { path: { workflowId: 'greet' } }, body: { variables: {} } })
  const { data } = await execution.runs.wait('')
  // @ts-expect-error: there may be an error instead.
  return data.status
}
