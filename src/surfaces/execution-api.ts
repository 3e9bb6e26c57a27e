/** The Execution API: every operation of openapi/execution.v1.yaml, and what implements it. */
import type { ExecutionV1Handlers } from '../../generated/execution.v1/server.ts'
import type { Principal } from '../domain/api-keys/api-key.ts'
import type { RunArtifacts } from '../domain/runs/artifacts.ts'
import type { RunFeed } from '../domain/runs/run-feed.ts'
import { runOperations } from '../domain/runs/run-operations.ts'
import type { Runs } from '../domain/runs/runs.ts'
import { workflowOperations } from '../domain/workflows/workflow-operations.ts'
import type { Workflows } from '../domain/workflows/workflows.ts'

export interface ExecutionApiDependencies {
  runs: Runs
  artifacts: RunArtifacts
  feed: RunFeed
  workflows: Workflows
}

export function executionApi({
  runs,
  artifacts,
  feed,
  workflows,
}: ExecutionApiDependencies): ExecutionV1Handlers<Principal> {
  const ofRuns = runOperations({ runs, artifacts, feed })
  const ofWorkflows = workflowOperations(workflows)
  return {
    queueRemoteRun: ofRuns.queueRemoteRun,
    listRuns: ofRuns.listRuns,
    getRun: ofRuns.getRun,
    cancelRun: ofRuns.cancelRun,
    streamRunEvents: ofRuns.streamRunEvents,
    getRunArtifact: ofRuns.getRunArtifact,
    listWorkflows: ofWorkflows.listWorkflows,
    getWorkflow: ofWorkflows.getWorkflow,
  }
}
