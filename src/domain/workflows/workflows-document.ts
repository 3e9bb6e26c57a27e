/**
 * The document of the Execution API with an operation for each workflow and for each wait that workflows declare, as
 * `getWorkflowsDocument` returns it.
 */
import { JsonText, stringify } from '../../contract/i-json.ts'
import { type Representation, Representations } from '../../contract/representations.ts'
import type { Document, MediaTypeObject, OperationObject, ResponseObject, Schema } from '../../openapi/document.ts'
import {
  answerComponents,
  type Components,
  outputComponents,
  SchemaError,
  toCommentText,
  variableComponents,
  waitOperationId,
  workflowNames,
} from '../../openapi/schema-components.ts'
import { executionContract } from '../../openapi/served-documents.ts'
import { mask } from './secrets.ts'
import {
  describeDeclared,
  type SchemaMember,
  type Workflow,
  type WorkflowExamples,
  WorkflowSchemaError,
} from './workflow.ts'
import type { Workflows } from './workflows.ts'

const queuePath = '/v1/execution/queue-remote/'
const waitsPath = '/v1/execution/runs/{runId}/waits/'

/** The path of the operation that answers a declared wait. */
export function waitPath(name: string): string {
  return waitsPath + encodeURIComponent(name)
}

/** The document, the pages and the tools of workflows, for all accounts that see the same ones. */
export const representations = new Representations<Workflows>()

/** JSON. @param url where callers reach the service. */
export function workflowsDocument(workflows: Workflows, url: string): Representation {
  const name = `document ${url}`
  return (
    representations.find(workflows, name) ??
    representations.add(workflows, name, stringify(createDocument(workflows, url)))
  )
}

/** @throws {WorkflowError} if OpenAPI cannot express a schema of the workflow. */
export function requireDescribable(workflow: Workflow): void {
  const describe = (member: SchemaMember, components: () => Components) => {
    try {
      components()
    } catch (error) {
      if (!(error instanceof SchemaError)) throw error
      const place = `${error.pointer} in the ${member} schema of workflow "${workflow.id}"`
      throw new WorkflowSchemaError(
        workflow,
        member,
        error.pointer,
        `The API's document cannot express ${place}: ${error.message}`,
      )
    }
  }
  describe('variables', () => variableComponents(workflow))
  describe('output', () => outputComponents(workflow, mask))
  for (const name of Object.keys(workflow.waits ?? {}))
    describe(`waits.${name}`, () => answerComponents(workflow, name))
}

function createDocument(workflows: Workflows, url: string): Document {
  const document = structuredClone(executionContract.document)
  document.servers = [{ url, description: 'This service.' }]
  const [queueing, answering] = [`${queuePath}{workflowId}`, `${waitsPath}{name}`].map((path) => {
    const { parameters = [], put } = document.paths[path] as unknown as Partial<PathTemplate> &
      Pick<PathTemplate, 'put'>
    shareResponses(document, put)
    return { parameters, put }
  }) as [PathTemplate, PathTemplate]
  const shared = sharedParts(document, queueing.put)
  const { schemas = {} } = document.components as Record<string, Record<string, Schema>>
  schemas[sharedMembers] = membersOfEveryRun()
  for (const workflow of workflows.list()) {
    document.paths[queuePath + workflow.id] = { put: createOperation(shared, workflow) }
    for (const [name, schema] of variableComponents(workflow)) schemas[name] = schema
    for (const [name, schema] of runComponents(workflow)) schemas[name] = schema
  }
  for (const [name, declaring] of declaredWaits(workflows)) {
    document.paths[waitPath(name)] = createWaitPath(answering, name, declaring)
    for (const workflow of declaring) {
      for (const [component, schema] of answerComponents(workflow, name)) schemas[component] = schema
    }
  }
  return document
}

/** The workflows that declare each wait, by its name. */
function declaredWaits(workflows: Workflows): [string, Workflow[]][] {
  const declared = new Map<string, Workflow[]>()
  for (const workflow of workflows.list()) {
    for (const name of Object.keys(workflow.waits ?? {})) declared.set(name, [...(declared.get(name) ?? []), workflow])
  }
  return [...declared].sort(([a], [b]) => (a < b ? -1 : 1))
}

/** A path of the document of v1, of which the live document has one for each workflow or wait. */
interface PathTemplate {
  parameters: { $ref: string }[]
  put: OperationObject
}

/** The address is the same for all workflows, so an answer is that of any workflow which declares the wait. */
function createWaitPath({ parameters, put }: PathTemplate, name: string, declaring: readonly Workflow[]) {
  const answers = declaring.map((workflow): [string, string] => {
    const [component = ''] = answerComponents(workflow, name).keys()
    return [workflow.id, component]
  })
  const [only, ...others] = answers.map(([, component]) => reference(component))
  const value = others.length === 0 ? only : { anyOf: [only, ...others] }
  const questions = declaring.map(({ id, waits }) => {
    const { title, description } = waits?.[name] ?? {}
    return `- \`${id}\`: ${[title ?? name, description].filter(Boolean).join('. ')}`
  })
  const example = declaring[0]?.examples?.answers?.[name]
  const operation = {
    ...put,
    operationId: waitOperationId(name),
    summary: toCommentText(`Answer the wait ${JSON.stringify(name)}`),
    description: toCommentText(`${put.description}\nWorkflows that declare this wait:\n\n${questions.join('\n')}`),
    requestBody: {
      ...put.requestBody,
      content: {
        'application/json': {
          schema: { type: 'object', additionalProperties: false, required: ['value'], properties: { value } },
          ...(example !== undefined && { examples: { example: { value: { value: example } } } }),
        },
      },
    },
    'x-wait-name': name,
    'x-workflow-answers': Object.fromEntries(answers),
  }
  return {
    parameters: parameters.filter((it) => it.$ref !== '#/components/parameters/WaitNameParameter'),
    put: operation,
  }
}

/**
 * Each workflow has its own responses for these statuses. They stand in its operation, since swagger-typescript-api reads
 * no body of a response that is a reference.
 */
const typedStatuses = ['200', '202']

/** Moves all other responses of a template to the components, so that every operation made from it refers to them. */
function shareResponses(document: Document, { operationId, responses }: OperationObject): void {
  const prefix = operationId.charAt(0).toUpperCase() + operationId.slice(1)
  const shared: Record<string, unknown> = {}
  for (const [status, response] of Object.entries(responses)) {
    if (typedStatuses.includes(status) || '$ref' in response) continue
    shared[prefix + status] = response
    responses[status] = { $ref: `#/components/responses/${prefix}${status}` } as unknown as ResponseObject
  }
  document.components.responses = { ...document.components.responses, ...shared } as Document['components'][string]
}

/** Parameters that only workflows with a browser accept. */
const browserParameters = [
  '#/components/parameters/BrowserContextId',
  '#/components/parameters/PersistContextParameter',
]

/** What is equal in the operations of all workflows. As text, since formatting it 500 times took half of the time. */
interface SharedParts {
  template: OperationObject
  /** Of the responses with `typedStatuses`. */
  headers: JsonText
  /** The refusals, as JSON without the opening brace. */
  refusals: string
  parameters: { withBrowser: JsonText; withoutBrowser: JsonText }
  /** Runs as JSON without the opening brace and `ownMembers`. */
  runs: { queued: string; succeeded: string }
}

function sharedParts(document: Document, operation: OperationObject): SharedParts {
  const { parameters = [], responses } = operation
  const others = parameters.filter((it) => !browserParameters.includes(String(Object(it).$ref)))
  const text = (value: unknown) => new JsonText(JSON.stringify(value))
  const refusals = Object.entries(responses).filter(([status]) => !typedStatuses.includes(status))
  const run = (name: string) => {
    const example = document.components.examples?.[name]?.value as object
    const members = Object.entries(example).filter(([member]) => !ownMembers.includes(member))
    return JSON.stringify(Object.fromEntries(members)).slice(1)
  }
  return {
    template: operation,
    headers: text(responses[202]?.headers),
    refusals: JSON.stringify(Object.fromEntries(refusals)).slice(1),
    parameters: { withBrowser: text(parameters), withoutBrowser: text(others) },
    runs: { queued: run('QueuedRun'), succeeded: run('SucceededRun') },
  }
}

function createOperation(shared: SharedParts, workflow: Workflow): OperationObject {
  const { security, requestBody } = shared.template
  const { parameters, refusals } = shared
  const { id, version, title, description, usesBrowser, deprecated, examples } = workflow
  const { operationId, component } = workflowNames(id)
  const operation = {
    operationId,
    tags: ['Workflows'],
    summary: toCommentText(title),
    description: toCommentText(
      [description ?? title, `Queues a run of the workflow \`${id}\`, version ${version}.`, describeDeclared(workflow)]
        .filter((paragraph) => paragraph !== undefined)
        .join('\n\n'),
    ),
    ...(deprecated && { deprecated }),
    security: usesBrowser ? security : security.slice(0, 1),
    parameters: usesBrowser ? parameters.withBrowser : parameters.withoutBrowser,
    requestBody: {
      ...requestBody,
      content: {
        'application/json': { schema: requestSchema(component), ...namedExamples(examples?.variables ?? []) },
      },
    },
    responses: new JsonText(`${stringify(typedResponses(shared, workflow)).slice(0, -1)},${refusals}`),
    'x-workflow-id': id,
    'x-workflow-version': version,
  }
  return operation as unknown as OperationObject
}

function typedResponses({ template, headers, runs }: SharedParts, workflow: Workflow): Schema {
  const [variables] = workflow.examples?.variables ?? []
  const [output] = workflow.examples?.outputs ?? []
  const { masked: variableData } = variables ?? {}
  const response = (status: '200' | '202', examples: Schema) => ({
    description: template.responses[status]?.description,
    headers,
    content: {
      'application/json': {
        schema: reference(`${workflowNames(workflow.id).component}_Run`),
        ...(variables && Object.keys(examples).length > 0 && { examples }),
      },
    },
  })
  const succeeded = () => ({ value: runExample(runs.succeeded, workflow, { variableData, output }) })
  return {
    200: response('200', output === undefined ? {} : { succeeded: succeeded() }),
    202: response('202', { queued: { value: runExample(runs.queued, workflow, { variableData, output: null }) } }),
  }
}

function reference(component: string): Schema {
  return { $ref: `#/components/schemas/${component}` }
}

function requestSchema(component: string): Schema {
  const properties = { variableData: reference(`${component}_Variables`) }
  return { type: 'object', additionalProperties: false, required: ['variableData'], properties }
}

/** A run of the workflow, which has an output if and only if it has succeeded, and the components of the output. */
function runComponents(workflow: Workflow): Components {
  const { component } = workflowNames(workflow.id)
  const variant = (status: Schema, output: Schema): Schema => {
    const properties = { workflowId: { type: 'string', const: workflow.id }, status, output }
    return { allOf: [reference(sharedMembers), { type: 'object', required: Object.keys(properties), properties }] }
  }
  const run = {
    description: `A run of the workflow \`${workflow.id}\`. Its \`output\` is as in the version that executed it.`,
    oneOf: [
      variant({ type: 'string', const: 'succeeded' }, reference(`${component}_Output`)),
      variant({ type: 'string', enum: otherStatuses }, { type: 'null' }),
    ],
  }
  return new Map<string, Schema>([[`${component}_Run`, run], ...outputComponents(workflow, mask)])
}

const sharedMembers = 'RunMembers'

/** `Run` without the members that a workflow's run restricts: generators make an enum with a constant `never`. */
function membersOfEveryRun(): Schema {
  const { required, properties, ...run } = schemasOfV1.Run as { required: string[]; properties: Schema }
  const { workflowId, status, output, ...members } = properties
  return { ...run, required: required.filter((name) => name in members), properties: members }
}

const schemasOfV1 = executionContract.document.components.schemas as Record<string, Schema>
const { RunStatus } = schemasOfV1 as Record<string, { enum: string[] }>
const otherStatuses = RunStatus?.enum.filter((status) => status !== 'succeeded')

function namedExamples(examples: WorkflowExamples['variables']): Pick<MediaTypeObject, 'examples'> {
  const named = examples.map(({ value }, index) => [
    index === 0 ? 'example' : `example${index + 1}`,
    { value: { variableData: value } },
  ])
  return named.length === 0 ? {} : { examples: Object.fromEntries(named) }
}

/** Members of a run that depend on its workflow. */
const ownMembers = ['workflowId', 'workflowVersion', 'variableData', 'output']

/** @param others all other members of the run, as JSON without the opening brace. */
function runExample(others: string, { id, version }: Workflow, members: object): JsonText {
  return new JsonText(
    `${JSON.stringify({ workflowId: id, workflowVersion: version, ...members }).slice(0, -1)},${others}`,
  )
}
