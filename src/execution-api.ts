/** The Execution API: every operation of openapi/execution.v1.yaml, and what implements it. */
import type { ExecutionV1Handlers } from '../generated/execution.v1/server.ts'
import type { Principal } from './api-keys/api-key.ts'
import type { RunArtifacts } from './runs/artifacts.ts'
import type { RunFeed } from './runs/feed.ts'
import { runOperations } from './runs/operations.ts'
import type { Runs } from './runs/runs.ts'
import { workflowOperations } from './workflows/operations.ts'
import type { Workflows } from './workflows/workflows.ts'

export interface ExecutionApiParts {
  runs: Runs
  artifacts: RunArtifacts
  feed: RunFeed
  workflows: Workflows
}

export function executionApi({ runs, artifacts, feed, workflows }: ExecutionApiParts): ExecutionV1Handlers<Principal> {
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
