/** The types of a client that knows the variables, outputs and answers of workflows, from the file that `types` writes. */
import type { ExecutionV1Operations } from '../../generated/execution.v1/client.ts'
import type { components, operations } from '../../generated/execution.v1/types.ts'
import type { OperationInit, Result } from './operation.ts'

type Run = components['schemas']['Run']

/** What a client knows of a workflow. */
export interface WorkflowType {
  variables: object
  output: unknown
  /** The answers that its runs wait for, by the names of the waits. */
  answers?: object
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
  : <Id extends WorkflowIdOf<W>>(
      init: TypedInit<'queueRemoteRun', { workflowId: Id }, { variableData: VariablesOf<W, Id> }>,
    ) => Promise<Result<RunOf<W, Id>>>

/** `completeWait` as a function that checks the name of the wait, and the answer by the workflows that declare the name. */
export type CompleteWait<W extends WorkflowTypes<W>> = string extends keyof W
  ? ExecutionV1Operations['completeWait']
  : <Name extends WaitNameOf<W>>(
      init: TypedInit<'completeWait', { runId: string; name: Name }, { value: AnswerOf<W, Name> }>,
    ) => Promise<Result<components['schemas']['Wait']>>

type AnswersOf<W extends WorkflowTypes<W>, Id extends keyof W> = W[Id] extends { answers: infer Answers }
  ? Answers
  : object

type WaitNameOf<W extends WorkflowTypes<W>> = { [Id in keyof W]: keyof AnswersOf<W, Id> & string }[keyof W]

type AnswerOf<W extends WorkflowTypes<W>, Name> = {
  [Id in keyof W]: Name extends keyof AnswersOf<W, Id> ? AnswersOf<W, Id>[Name] : never
}[keyof W]

type AnyInit<Id extends keyof operations> = OperationInit<operations, Id, 'json'>

/** The arguments of an operation with the types of a workflow. */
type TypedInit<Id extends 'queueRemoteRun' | 'completeWait', Path, Body> = Omit<
  AnyInit<Id>,
  'params' | 'body' | 'parseAs'
> & { params: Omit<AnyInit<Id>['params'], 'path'> & { path: Path }; body: Body }
