/** Changes of what a caller sends, each with the judgement that a consumer of v1 would give. */
import { type Part, parameterOf, queue, run, runs, schemaOf } from './altered.ts'

export interface Alteration {
  title: string
  /** What the released document has, where ours has nothing of the kind. */
  prepare?: (document: Part) => void
  alter: (document: Part) => void
  kind: 'breaking' | 'added' | 'deprecated' | 'changed'
  /** What the sentence about it must say: the place, and what became of it. */
  says: RegExp
}

export const operationChanges: Alteration[] = [
  { title: 'a path is removed', alter: (it) => delete it.paths[run], kind: 'breaking', says: /`getRun` is gone/ },
  {
    title: 'a method is removed',
    alter: (it) => delete it.paths[queue].put,
    kind: 'breaking',
    says: /`queueRemoteRun` is gone/,
  },
  {
    title: 'an operation is moved to another path',
    alter: (it) => {
      it.paths['/v1/execution/run-list'] = it.paths[runs]
      delete it.paths[runs]
    },
    kind: 'breaking',
    says: /`listRuns` is gone/,
  },
  {
    title: 'an operation is renamed',
    alter: (it) => (it.paths[runs].get.operationId = 'findRuns'),
    kind: 'breaking',
    says: /`findRuns` was called `listRuns`/,
  },
  {
    title: 'an operation is added',
    alter: (it) => (it.paths[runs].post = { ...it.paths[run].get, operationId: 'addRun' }),
    kind: 'added',
    says: /`addRun` is new/,
  },
  {
    title: 'an operation is deprecated',
    alter: (it) => (it.paths[run].get.deprecated = true),
    kind: 'deprecated',
    says: /`getRun` is deprecated/,
  },
  {
    title: 'an operation needs another scope',
    alter: (it) => it.paths[run].get.security[0].bearerApiKey.push('runs:write'),
    kind: 'breaking',
    says: /`getRun` needs the scope `runs:write`/,
  },
  {
    title: 'an operation needs a scope less',
    alter: (it) => (it.paths[run].get.security[0].bearerApiKey = []),
    kind: 'added',
    says: /`getRun` .*without the scope `runs:read`/,
  },
  {
    title: 'the security scheme moves to a header of its own',
    alter: (it) => (it.components.securitySchemes.bearerApiKey = { type: 'apiKey', in: 'header', name: 'x-key' }),
    kind: 'breaking',
    says: /`bearerApiKey`/,
  },
  {
    title: 'the description of an operation changes',
    alter: (it) => (it.paths[run].get.description = 'Reads a run.'),
    kind: 'changed',
    says: /`getRun` is described in other words/,
  },
  {
    title: 'the description of the document changes',
    alter: (it) => (it.info.description += '\nMore.'),
    kind: 'changed',
    says: /The document is described in other words/,
  },
]

export const parameterChanges: Alteration[] = [
  {
    title: 'a path parameter is renamed',
    alter: (it) => {
      it.paths['/v1/execution/runs/{id}'] = it.paths[run]
      delete it.paths[run]
      it.paths['/v1/execution/runs/{id}'].parameters = [{ ...parameterOf(it, 'RunId'), name: 'id' }]
    },
    kind: 'breaking',
    says: /Path parameter `id` of `getRun` was called `runId`/,
  },
  {
    title: 'a required query parameter is added',
    alter: (it) => it.paths[runs].get.parameters.push({ name: 'of', in: 'query', required: true, schema: {} }),
    kind: 'breaking',
    says: /`listRuns` requires the new query parameter `of`/,
  },
  {
    title: 'an optional query parameter is added',
    alter: (it) => it.paths[runs].get.parameters.push({ name: 'of', in: 'query', schema: {} }),
    kind: 'added',
    says: /`listRuns` takes the new query parameter `of`/,
  },
  {
    title: 'a query parameter is removed',
    alter: (it) => it.paths[runs].get.parameters.shift(),
    kind: 'breaking',
    says: /`listRuns` .*query parameter `workflowId`/,
  },
  {
    title: 'a request header is removed',
    alter: (it) => it.paths[queue].put.parameters.shift(),
    kind: 'breaking',
    says: /`queueRemoteRun` .*header `Idempotency-Key`/,
  },
  {
    title: 'an optional parameter becomes required',
    alter: (it) => (parameterOf(it, 'Priority').required = true),
    kind: 'breaking',
    says: /Query parameter `priority` of `queueRemoteRun` is required/,
  },
  {
    title: "a parameter's maximum falls",
    alter: (it) => (parameterOf(it, 'Priority').schema.maximum = 5),
    kind: 'breaking',
    says: /`priority` of `queueRemoteRun` has the maximum 5 instead of 10/,
  },
  {
    title: "a parameter's maximum rises",
    alter: (it) => (parameterOf(it, 'Priority').schema.maximum = 20),
    kind: 'added',
    says: /has the maximum 20 instead of 10/,
  },
  {
    title: "a parameter's minimum rises",
    alter: (it) => (parameterOf(it, 'Limit').schema.minimum = 2),
    kind: 'breaking',
    says: /`limit` of `listRuns` has the minimum 2 instead of 1/,
  },
  {
    title: 'a parameter loses a value',
    alter: (it) => parameterOf(it, 'PersistContext').schema.enum.pop(),
    kind: 'breaking',
    says: /`persistContext` of `queueRemoteRun` .*`always`/,
  },
  {
    title: 'a parameter gets a value more',
    alter: (it) => parameterOf(it, 'PersistContext').schema.enum.push('onFailure'),
    kind: 'added',
    says: /`persistContext` of `queueRemoteRun` .*`onFailure`/,
  },
  {
    title: 'the pattern of a parameter changes',
    alter: (it) => (parameterOf(it, 'IdempotencyKey').schema.pattern = '^[a-z]+$'),
    kind: 'breaking',
    says: /Header `Idempotency-Key` of `queueRemoteRun` .*pattern/,
  },
  {
    title: 'a parameter gets a pattern',
    alter: (it) => (parameterOf(it, 'Prefer').schema.pattern = '^wait=[0-9]+$'),
    kind: 'breaking',
    says: /Header `Prefer` of `queueRemoteRun` .*pattern/,
  },
  {
    title: 'a parameter loses its pattern',
    alter: (it) => delete parameterOf(it, 'IdempotencyKey').schema.pattern,
    kind: 'added',
    says: /Header `Idempotency-Key` of `queueRemoteRun` .*pattern/,
  },
  {
    title: 'a parameter gets a format',
    alter: (it) => (parameterOf(it, 'Prefer').schema.format = 'uuid'),
    kind: 'breaking',
    says: /`Prefer` of `queueRemoteRun` .*format/,
  },
  {
    title: 'the default of a parameter changes',
    alter: (it) => (parameterOf(it, 'PersistContext').schema.default = 'always'),
    kind: 'breaking',
    says: /`persistContext` of `queueRemoteRun` has the default `always` instead of `onSuccess`/,
  },
  {
    title: 'a parameter takes another type',
    alter: (it) => (parameterOf(it, 'Priority').schema.type = 'string'),
    kind: 'breaking',
    says: /`priority` of `queueRemoteRun` .*`integer`/,
  },
  {
    title: 'a parameter is deprecated',
    alter: (it) => (parameterOf(it, 'Priority').deprecated = true),
    kind: 'deprecated',
    says: /`priority` of `queueRemoteRun` is deprecated/,
  },
  {
    title: 'the example of a parameter changes',
    alter: (it) => (parameterOf(it, 'Prefer').example = 'wait=20'),
    kind: 'changed',
    says: /`Prefer` of `queueRemoteRun` has other examples/,
  },
]

export const bodyChanges: Alteration[] = [
  {
    title: 'a required body member is added',
    alter: (it) => {
      schemaOf(it, 'QueueRemoteRunRequest').properties.queue = { type: 'string' }
      schemaOf(it, 'QueueRemoteRunRequest').required.push('queue')
    },
    kind: 'breaking',
    says: /`QueueRemoteRunRequest` requires the new member `queue`/,
  },
  {
    title: 'an optional body member is added',
    alter: (it) => (schemaOf(it, 'QueueRemoteRunRequest').properties.queue = { type: 'string' }),
    kind: 'added',
    says: /`QueueRemoteRunRequest` takes the new member `queue`/,
  },
  {
    title: 'a body member is removed where no other member may be',
    alter: (it) => {
      schemaOf(it, 'QueueRemoteRunRequest').properties = {}
      schemaOf(it, 'QueueRemoteRunRequest').required = []
    },
    kind: 'breaking',
    says: /`QueueRemoteRunRequest` does not take the member `variableData`/,
  },
  {
    title: 'a required body member becomes optional',
    alter: (it) => (schemaOf(it, 'QueueRemoteRunRequest').required = []),
    kind: 'added',
    says: /`QueueRemoteRunRequest` .*without `variableData`/,
  },
  {
    title: 'a body takes members that have no name any more',
    alter: (it) => (schemaOf(it, 'VariableData').additionalProperties = false),
    kind: 'breaking',
    says: /`VariableData` refuses members that it does not name/,
  },
  {
    title: 'variables may only be strings',
    alter: (it) => (schemaOf(it, 'VariableData').additionalProperties = { type: 'string' }),
    kind: 'breaking',
    says: /Any other member of `VariableData` must be `string`/,
  },
  {
    title: 'the body may be left out',
    alter: (it) => (it.paths[queue].put.requestBody.required = false),
    kind: 'added',
    says: /The body of `queueRemoteRun` .*left out/,
  },
  {
    title: 'an operation without a body requires one',
    alter: (it) => (it.paths['/v1/execution/runs/{runId}/cancel'].post.requestBody = { required: true, content: {} }),
    kind: 'breaking',
    says: /`cancelRun` requires a body/,
  },
  {
    title: 'a media type of the body is removed',
    alter: (it) => {
      const { content } = it.paths[queue].put.requestBody
      content['application/cbor'] = content['application/json']
      delete content['application/json']
    },
    kind: 'breaking',
    says: /The body of `queueRemoteRun` .*`application\/json`/,
  },
  {
    title: 'a media type of the body is added',
    alter: (it) => {
      const { content } = it.paths[queue].put.requestBody
      content['application/cbor'] = content['application/json']
    },
    kind: 'added',
    says: /The body of `queueRemoteRun` .*`application\/cbor`/,
  },
  {
    title: 'a body may be smaller than the usual 1 MiB',
    alter: (it) => (it.paths[queue].put.requestBody['x-body-bytes-max'] = 65536),
    kind: 'breaking',
    says: /The body of `queueRemoteRun` may have 65536 bytes instead of 1048576/,
  },
  {
    title: 'a body may be larger',
    alter: (it) => (it.paths[queue].put.requestBody['x-body-bytes-max'] = 2097152),
    kind: 'added',
    says: /may have 2097152 bytes instead of 1048576/,
  },
]
