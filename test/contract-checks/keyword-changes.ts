/** Changes of keywords that are easily overlooked, each with the judgement that a consumer of v1 would give. */
import { type Part, parameterOf, queue, run, runs, schemaOf } from './altered.ts'
import type { Alteration } from './request-changes.ts'

const cancel = '/v1/execution/runs/{runId}/cancel'
const priority = (it: Part) => parameterOf(it, 'Priority').schema

/** Kinds of run that share the members of their parent. */
const branched = (it: Part) => {
  it.paths[queue].put.requestBody.content['application/json'].schema = {
    type: 'object',
    required: ['name'],
    properties: { name: { type: 'string' } },
    oneOf: [{ properties: { kind: { const: 'one' } } }, { properties: { kind: { const: 'two' } } }],
  }
}

export const keywordChanges: Alteration[] = [
  {
    title: 'a type becomes wider and a bound narrower',
    alter: (it) => Object.assign(priority(it), { type: 'number', maximum: 1 }),
    kind: 'breaking',
    says: /`priority` of `queueRemoteRun` has the maximum 1 instead of 10/,
  },
  {
    title: 'a type is dropped and a bound narrower',
    alter: (it) => {
      delete priority(it).type
      priority(it).maximum = 1
    },
    kind: 'breaking',
    says: /`priority` of `queueRemoteRun` has the maximum 1 instead of 10/,
  },
  {
    title: 'a type becomes wider alone',
    alter: (it) => (priority(it).type = 'number'),
    kind: 'added',
    says: /`priority` of `queueRemoteRun` may be `number`/,
  },
  {
    title: 'a member that all branches share takes less',
    prepare: branched,
    alter: (it) => {
      it.paths[queue].put.requestBody.content['application/json'].schema.properties.name.maxLength = 3
    },
    kind: 'breaking',
    says: /`name` of the body of `queueRemoteRun` has the `maxLength` 3/,
  },
  {
    title: 'a member that all branches share is required',
    prepare: (it) => {
      branched(it)
      it.paths[queue].put.requestBody.content['application/json'].schema.oneOf[0].required = ['kind']
      delete it.paths[queue].put.requestBody.content['application/json'].schema.required
    },
    alter: (it) => (it.paths[queue].put.requestBody.content['application/json'].schema.required = ['name']),
    kind: 'breaking',
    says: /The body of `queueRemoteRun` requires `name`/,
  },
  {
    title: 'a body does not say how large it may be',
    alter: (it) => delete it.paths[queue].put.requestBody['x-body-bytes-max'],
    kind: 'breaking',
    says: /The body of `queueRemoteRun` does not say how large it may be/,
  },
  {
    title: 'an operation may not be repeated any more',
    alter: (it) => delete it.paths[cancel].post['x-idempotent'],
    kind: 'breaking',
    says: /`cancelRun` may not be repeated any more/,
  },
  {
    title: 'an answer tells its kinds apart by another member',
    alter: (it) => (schemaOf(it, 'RunEvent').discriminator.propertyName = 'kind'),
    kind: 'breaking',
    says: /`RunEvent` has another `discriminator`/,
  },
  {
    title: 'an answer does not tell its kinds apart any more',
    alter: (it) => delete schemaOf(it, 'RunEvent').discriminator,
    kind: 'breaking',
    says: /`RunEvent` has no `discriminator` any more/,
  },
  {
    title: 'a path is served elsewhere',
    alter: (it) => (it.paths[run].servers = [{ url: 'http://127.0.0.1:3009' }]),
    kind: 'breaking',
    says: /`getRun` has another `servers`/,
  },
  {
    title: 'a path has a method that is not compared',
    alter: (it) => (it.paths[run].head = it.paths[run].get),
    kind: 'breaking',
    says: /`getRun` has another `head`/,
  },
  {
    title: 'a member of a body is only read',
    alter: (it) => (schemaOf(it, 'QueueRemoteRunRequest').properties.variableData.readOnly = true),
    kind: 'breaking',
    says: /is `readOnly`/,
  },
  {
    title: 'a keyword that nobody has judged is added',
    alter: (it) => (priority(it)['x-rounded'] = true),
    kind: 'breaking',
    says: /has another `x-rounded`/,
  },
  {
    title: 'a list must contain more',
    alter: (it) => (schemaOf(it, 'VariableData').minContains = 2),
    kind: 'breaking',
    says: /`VariableData` has the `minContains` 2/,
  },
  {
    title: 'an operation without security asks for a key',
    prepare: (it) => {
      delete it.security
      delete it.paths[run].get.security
    },
    alter: (it) => (it.paths[run].get.security = [{ bearerApiKey: ['runs:read'] }]),
    kind: 'breaking',
    says: /`getRun` does not take calls without a key any more/,
  },
  {
    title: 'an operation asks for no key any more',
    alter: (it) => (it.paths[run].get.security = []),
    kind: 'added',
    says: /`getRun` takes calls without a key/,
  },
]

/** What is written in another way and means the same. */
export const sameMeanings: [string, (it: Part) => void][] = [
  [
    'the default serialisation is spelt out',
    (it) => {
      for (const name of ['Priority', 'Limit']) Object.assign(parameterOf(it, name), { style: 'form', explode: true })
    },
  ],
  [
    'a header is written in another case',
    (it) => {
      const { headers } = it.paths[queue].put.responses['202']
      headers.location = headers.Location
      delete headers.Location
    },
  ],
  [
    'a security scheme has another name',
    (it) => {
      const { securitySchemes } = it.components
      securitySchemes.key = securitySchemes.bearerApiKey
      delete securitySchemes.bearerApiKey
      for (const item of Object.values<Part>(it.paths)) {
        for (const operation of Object.values<Part>(item)) {
          if (operation.security) operation.security = [{ key: operation.security[0].bearerApiKey }]
        }
      }
    },
  ],
  [
    'security is said once for all operations',
    (it) => {
      it.security = it.paths[runs].get.security
      delete it.paths[runs].get.security
    },
  ],
]
