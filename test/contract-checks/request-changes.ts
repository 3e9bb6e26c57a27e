/** Changes of requests, each with its effect on clients of v1. */
import {
  added,
  breaking,
  cancel,
  changed,
  deprecated,
  type ExpectedChange,
  type Part,
  parameterOf,
  queue,
  run,
  runs,
  schemaOf,
} from './modified-documents.ts'

export const operationChanges: ExpectedChange[] = [
  breaking('a path is removed', /`getRun` and `deleteRun` was removed/, (it) => delete it.paths[run]),
  breaking('a method is removed', /`queueRemoteRun` was removed/, (it) => delete it.paths[queue].put),
  breaking('an operation is moved to another path', /`listRuns` was removed/, (it) => {
    it.paths['/v1/execution/run-list'] = it.paths[runs]
    delete it.paths[runs]
  }),
  breaking('an operation is renamed', /`findRuns` was renamed from `listRuns`/, (it) => {
    it.paths[runs].get.operationId = 'findRuns'
  }),
  added('an operation is added', /`addRun` is new/, (it) => {
    it.paths[runs].post = { ...it.paths[run].get, operationId: 'addRun' }
  }),
  deprecated('an operation is deprecated', /`getRun` is deprecated/, (it) => {
    it.paths[run].get.deprecated = true
  }),
  breaking('an operation requires another scope', /`getRun` also requires the scope `runs:write`/, (it) => {
    it.paths[run].get.security[0].bearerApiKey.push('runs:write')
  }),
  added('an operation requires one scope less', /`getRun` no longer requires the scope `runs:read`/, (it) => {
    it.paths[run].get.security[0].bearerApiKey = []
  }),
  breaking('the security scheme uses another header', /`bearerApiKey`/, (it) => {
    it.components.securitySchemes.bearerApiKey = { type: 'apiKey', in: 'header', name: 'x-key' }
  }),
  changed('the description of an operation changes', /`getRun` has a new description/, (it) => {
    it.paths[run].get.description = 'Reads a run.'
  }),
  changed('the description of the document changes', /The document has a new description/, (it) => {
    it.info.description += '\nMore.'
  }),
]

export const parameterChanges: ExpectedChange[] = [
  breaking(
    'a path parameter is renamed',
    /Path parameter `id` of each of `getRun` and `deleteRun` was renamed from `runId`/,
    (it) => {
      it.paths['/v1/execution/runs/{id}'] = it.paths[run]
      delete it.paths[run]
      it.paths['/v1/execution/runs/{id}'].parameters = [{ ...parameterOf(it, 'RunId'), name: 'id' }]
    },
  ),
  added(
    'a query parameter can be repeated',
    /Query parameter `workflowId` of `listRuns` can be given several times/,
    (it) => {
      const workflowId = it.paths[runs].get.parameters.find((each: Part) => each.name === 'workflowId')
      workflowId.schema = { type: 'array', minItems: 1, items: workflowId.schema }
    },
  ),
  breaking('a query parameter must be repeated', /must be `array` instead of `string`/, (it) => {
    const workflowId = it.paths[runs].get.parameters.find((each: Part) => each.name === 'workflowId')
    workflowId.schema = { type: 'array', minItems: 2, items: workflowId.schema }
  }),
  breaking('a repeated query parameter accepts fewer values', /can no longer be `queued`/, (it) => {
    const status = it.paths[runs].get.parameters.find((each: Part) => each.name === 'status')
    status.schema.items = { type: 'string', enum: ['failed'] }
  }),
  breaking('a required query parameter is added', /`listRuns` requires the new query parameter `of`/, (it) => {
    it.paths[runs].get.parameters.push({ name: 'of', in: 'query', required: true, schema: {} })
  }),
  added('an optional query parameter is added', /`listRuns` accepts the new query parameter `of`/, (it) => {
    it.paths[runs].get.parameters.push({ name: 'of', in: 'query', schema: {} })
  }),
  breaking('a query parameter is removed', /`listRuns` no longer accepts the query parameter `workflowId`/, (it) => {
    it.paths[runs].get.parameters.shift()
  }),
  breaking('a request header is removed', /`queueRemoteRun` no longer accepts the header `Idempotency-Key`/, (it) => {
    it.paths[queue].put.parameters.shift()
  }),
  breaking(
    'an optional parameter becomes required',
    /Query parameter `priority` of `queueRemoteRun` is now required/,
    (it) => {
      parameterOf(it, 'Priority').required = true
    },
  ),
  breaking(
    'the maximum of a parameter falls',
    /`priority` of `queueRemoteRun` has the maximum 5 instead of 10/,
    (it) => {
      parameterOf(it, 'Priority').schema.maximum = 5
    },
  ),
  added('the maximum of a parameter rises', /has the maximum 20 instead of 10/, (it) => {
    parameterOf(it, 'Priority').schema.maximum = 20
  }),
  breaking(
    'the minimum of a parameter rises',
    /`limit` of each of `listRuns`, .* has the minimum 2 instead of 1/,
    (it) => {
      parameterOf(it, 'Limit').schema.minimum = 2
    },
  ),
  breaking(
    'a parameter accepts one value less',
    /`persistContext` of `queueRemoteRun` can no longer be `always`/,
    (it) => {
      parameterOf(it, 'PersistContextParameter').schema.enum.pop()
    },
  ),
  added('a parameter accepts one value more', /`persistContext` of `queueRemoteRun` can also be `onFailure`/, (it) => {
    parameterOf(it, 'PersistContextParameter').schema.enum.push('onFailure')
  }),
  breaking('the pattern of a parameter changes', /Header `Idempotency-Key` of .*`queueRemoteRun`.* pattern/, (it) => {
    parameterOf(it, 'IdempotencyKey').schema.pattern = '^[a-z]+$'
  }),
  breaking('a parameter gets a pattern', /Header `Prefer` of `queueRemoteRun` .*pattern/, (it) => {
    parameterOf(it, 'Prefer').schema.pattern = '^wait=[0-9]+$'
  }),
  added('a parameter loses its pattern', /Header `Idempotency-Key` of .*`queueRemoteRun`.* pattern/, (it) => {
    delete parameterOf(it, 'IdempotencyKey').schema.pattern
  }),
  breaking('a parameter gets a format', /`Prefer` of `queueRemoteRun` .*format/, (it) => {
    parameterOf(it, 'Prefer').schema.format = 'uuid'
  }),
  breaking(
    'the default of a parameter changes',
    /`persistContext` of `queueRemoteRun` has the default `always` instead of `onSuccess`/,
    (it) => {
      parameterOf(it, 'PersistContextParameter').schema.default = 'always'
    },
  ),
  breaking(
    'the type of a parameter changes',
    /`priority` of `queueRemoteRun` must be `string` instead of `integer`/,
    (it) => {
      parameterOf(it, 'Priority').schema.type = 'string'
    },
  ),
  deprecated('a parameter is deprecated', /`priority` of `queueRemoteRun` is deprecated/, (it) => {
    parameterOf(it, 'Priority').deprecated = true
  }),
  changed('the example of a parameter changes', /`Prefer` of `queueRemoteRun` has new examples/, (it) => {
    parameterOf(it, 'Prefer').example = 'wait=20'
  }),
]

export const bodyChanges: ExpectedChange[] = [
  breaking('a required body member is added', /`QueueRemoteRunRequest` requires the new member `queue`/, (it) => {
    schemaOf(it, 'QueueRemoteRunRequest').properties.queue = { type: 'string' }
    schemaOf(it, 'QueueRemoteRunRequest').required.push('queue')
  }),
  added('an optional body member is added', /`QueueRemoteRunRequest` accepts the new member `queue`/, (it) => {
    schemaOf(it, 'QueueRemoteRunRequest').properties.queue = { type: 'string' }
  }),
  breaking(
    'a body member is removed that undeclared members do not replace',
    /`QueueRemoteRunRequest` no longer accepts the member `variableData`/,
    (it) => {
      schemaOf(it, 'QueueRemoteRunRequest').properties = {}
      schemaOf(it, 'QueueRemoteRunRequest').required = []
    },
  ),
  added(
    'a required body member becomes optional',
    /`QueueRemoteRunRequest` no longer requires `variableData`/,
    (it) => {
      schemaOf(it, 'QueueRemoteRunRequest').required = []
    },
  ),
  breaking(
    'a body no longer accepts undeclared members',
    /`VariableData` no longer accepts undeclared members/,
    (it) => {
      schemaOf(it, 'VariableData').additionalProperties = false
    },
  ),
  breaking('undeclared members must have a type', /Any undeclared member of `VariableData` must be `string`/, (it) => {
    schemaOf(it, 'VariableData').additionalProperties = { type: 'string' }
  }),
  added('the body becomes optional', /The body of `queueRemoteRun` is now optional/, (it) => {
    it.paths[queue].put.requestBody.required = false
  }),
  breaking('an operation without a body requires one', /`cancelRun` requires a body/, (it) => {
    it.paths[cancel].post.requestBody = { required: true, content: {} }
  }),
  breaking(
    'a media type of the body is removed',
    /The body of `queueRemoteRun` can no longer be `application\/json`/,
    (it) => {
      const { content } = it.paths[queue].put.requestBody
      content['application/cbor'] = content['application/json']
      delete content['application/json']
    },
  ),
  added('a media type of the body is added', /The body of `queueRemoteRun` can be `application\/cbor`/, (it) => {
    const { content } = it.paths[queue].put.requestBody
    content['application/cbor'] = content['application/json']
  }),
  breaking(
    'the maximum size of a body falls below the default of 1 MiB',
    /The body of `queueRemoteRun` is limited to 65536 bytes instead of 1048576/,
    (it) => {
      it.paths[queue].put.requestBody['x-body-bytes-max'] = 65536
    },
  ),
  added('the maximum size of a body rises', /is limited to 2097152 bytes instead of 1048576/, (it) => {
    it.paths[queue].put.requestBody['x-body-bytes-max'] = 2097152
  }),
]
