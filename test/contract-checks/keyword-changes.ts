/** Changes that a comparison easily misses, each with its effect on clients of v1. */
import {
  added,
  breaking,
  cancel,
  type ExpectedChange,
  type Part,
  parameterOf,
  queue,
  run,
  runs,
  schemaOf,
} from './modified-documents.ts'

const priority = (it: Part) => parameterOf(it, 'Priority').schema

/** A body whose alternatives share the members of their parent. */
const withAlternatives = (it: Part) => {
  it.paths[queue].put.requestBody.content['application/json'].schema = {
    type: 'object',
    required: ['name'],
    properties: { name: { type: 'string' } },
    oneOf: [{ properties: { kind: { const: 'one' } } }, { properties: { kind: { const: 'two' } } }],
  }
}

export const keywordChanges: ExpectedChange[] = [
  breaking(
    'a type becomes wider and a maximum lower',
    /`priority` of `queueRemoteRun` has the maximum 1 instead of 10/,
    (it) => {
      Object.assign(priority(it), { type: 'number', maximum: 1 })
    },
  ),
  breaking(
    'a type is removed and a maximum becomes lower',
    /`priority` of `queueRemoteRun` has the maximum 1 instead of 10/,
    (it) => {
      delete priority(it).type
      priority(it).maximum = 1
    },
  ),
  added('a type becomes wider', /`priority` of `queueRemoteRun` can be `number`/, (it) => {
    priority(it).type = 'number'
  }),
  breaking(
    'a member shared by all alternatives gets a maximum length',
    /`name` of the body of `queueRemoteRun` has the `maxLength` 3/,
    (it) => {
      it.paths[queue].put.requestBody.content['application/json'].schema.properties.name.maxLength = 3
    },
    withAlternatives,
  ),
  breaking(
    'a member shared by all alternatives becomes required',
    /The body of `queueRemoteRun` now requires `name`/,
    (it) => {
      it.paths[queue].put.requestBody.content['application/json'].schema.required = ['name']
    },
    (it) => {
      withAlternatives(it)
      it.paths[queue].put.requestBody.content['application/json'].schema.oneOf[0].required = ['kind']
      delete it.paths[queue].put.requestBody.content['application/json'].schema.required
    },
  ),
  breaking(
    'a body no longer declares its maximum size',
    /The body of `queueRemoteRun` does not declare its maximum size/,
    (it) => {
      delete it.paths[queue].put.requestBody['x-body-bytes-max']
    },
  ),
  breaking('an operation is no longer idempotent', /`cancelRun` is no longer idempotent/, (it) => {
    delete it.paths[cancel].post['x-idempotent']
  }),
  breaking('the discriminator of a response changes', /`RunEvent` has a different `discriminator`/, (it) => {
    schemaOf(it, 'RunEvent').discriminator.propertyName = 'kind'
  }),
  breaking('the discriminator of a response is removed', /`RunEvent` no longer has a `discriminator`/, (it) => {
    delete schemaOf(it, 'RunEvent').discriminator
  }),
  breaking('a path gets other servers', /`getRun` and `deleteRun` has a different `servers`/, (it) => {
    it.paths[run].servers = [{ url: 'http://127.0.0.1:3009' }]
  }),
  breaking(
    'a path gets a method that the comparison does not handle',
    /`getRun` and `deleteRun` has a different `head`/,
    (it) => {
      it.paths[run].head = it.paths[run].get
    },
  ),
  breaking('a member of a body becomes read-only', /is now `readOnly`/, (it) => {
    schemaOf(it, 'QueueRemoteRunRequest').properties.variableData.readOnly = true
  }),
  breaking('an unknown keyword is added', /has a different `x-rounded`/, (it) => {
    priority(it)['x-rounded'] = true
  }),
  breaking(
    'minContains is raised',
    /`VariableData` has the `minContains` 2 instead of 1/,
    (it) => {
      schemaOf(it, 'VariableData').minContains = 2
    },
    (it) => {
      schemaOf(it, 'VariableData').contains = { type: 'string' }
    },
  ),
  breaking(
    'an operation without security requires a key',
    /`getRun` no longer accepts calls without a key/,
    (it) => {
      it.paths[run].get.security = [{ bearerApiKey: ['runs:read'] }]
    },
    (it) => {
      delete it.security
      delete it.paths[run].get.security
    },
  ),
  added('an operation no longer requires a key', /`getRun` accepts calls without a key/, (it) => {
    it.paths[run].get.security = []
  }),
]

/** Different notations of the same contract. */
export const equivalentDocuments: [string, (it: Part) => void][] = [
  [
    'the default serialisation becomes explicit',
    (it) => {
      for (const name of ['Priority', 'Limit']) Object.assign(parameterOf(it, name), { style: 'form', explode: true })
    },
  ],
  [
    'the case of a header name changes',
    (it) => {
      const { headers } = it.paths[queue].put.responses['202']
      headers.location = headers.Location
      delete headers.Location
    },
  ],
  [
    'a security scheme is renamed',
    (it) => {
      const { securitySchemes } = it.components
      securitySchemes.key = securitySchemes.bearerApiKey
      delete securitySchemes.bearerApiKey
      for (const item of Object.values<Part>(it.paths)) {
        for (const operation of Object.values<Part>(item)) {
          for (const requirement of operation.security ?? []) {
            if (!requirement.bearerApiKey) continue
            requirement.key = requirement.bearerApiKey
            delete requirement.bearerApiKey
          }
        }
      }
    },
  ],
  [
    'security moves from the operations to the document',
    (it) => {
      it.security = it.paths[runs].get.security
      delete it.paths[runs].get.security
    },
  ],
]
