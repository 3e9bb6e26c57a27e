/** The types of a client that knows the variables and outputs of workflows, from the file that `types` writes. */
import type { ExecutionV1Operations } from '../../generated/execution.v1/client.ts'
import type { components, operations } from '../../generated/execution.v1/types.ts'
import type { OperationInit, Result } from './operation.ts'

type Run = components['schemas']['Run']

/** What a client knows of a workflow. */
export interface WorkflowType {
  variables: object
  output: unknown
}

/** Workflows by id. */
export type WorkflowTypes<W> = { [Id in keyof W]: WorkflowType }

/** Any workflow with any variables: what a client knows without the file. */
export interface AnyWorkflows {
  [id: string]: { variables: Record<string, unknown>; output: unknown }
}

export type WorkflowIdOf<W> = keyof W & string

/** The variables of a workflow as a caller sends them. */
export type VariablesOf<W extends WorkflowTypes<W>, Id extends WorkflowIdOf<W>> = W[Id]['variables']

/** A run of a workflow, which has an output if and only if it has succeeded. */
export type RunOf<W extends WorkflowTypes<W>, Id extends WorkflowIdOf<W>> = string extends keyof W
  ? Run
  : RunWith<Id, 'succeeded', W[Id]['output']> | RunWith<Id, Exclude<Run['status'], 'succeeded'>, null>

type RunWith<Id, Status, Output> = Omit<Run, 'workflowId' | 'status' | 'output'> & {
  workflowId: Id
  status: Status
  output: Output
}

/** `queueRemoteRun` as a function that checks the workflow's id and variables. */
export type QueueRemoteRun<W extends WorkflowTypes<W>> = string extends keyof W
  ? ExecutionV1Operations['queueRemoteRun']
  : <Id extends WorkflowIdOf<W>>(init: QueueInit<Id, VariablesOf<W, Id>>) => Promise<Result<RunOf<W, Id>>>

type AnyInit = OperationInit<operations, 'queueRemoteRun', 'json'>

type QueueInit<Id, Variables> = Omit<AnyInit, 'params' | 'body' | 'parseAs'> & {
  params: Omit<AnyInit['params'], 'path'> & { path: { workflowId: Id } }
  body: { variableData: Variables }
}
