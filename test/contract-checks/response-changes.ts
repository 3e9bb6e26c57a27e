/** Changes of responses, each with its effect on clients of v1. */
import {
  added,
  artifact,
  breaking,
  changed,
  deprecated,
  type ExpectedChange,
  queue,
  run,
  runs,
  schemaOf,
} from './modified-documents.ts'

/** Makes an object of responses more open; compatible, since clients ignore unknown members. */
export const openings: ExpectedChange[] = [
  changed(
    'an object may have undeclared members',
    /`Run` can have undeclared members/,
    (it) => delete schemaOf(it, 'Run').additionalProperties,
    (it) => (schemaOf(it, 'Run').additionalProperties = false),
  ),
  changed(
    'an object that lists its members may have more',
    /`Problem` no longer has the `maxProperties` 9/,
    (it) => delete schemaOf(it, 'Problem').maxProperties,
    (it) => (schemaOf(it, 'Problem').maxProperties = 9),
  ),
]

export const statusChanges: ExpectedChange[] = [
  breaking('a success status is removed', /`queueRemoteRun` no longer responds with 200/, (it) => {
    delete it.paths[queue].put.responses['200']
  }),
  breaking('a success status is added', /`getRun` can respond with 204/, (it) => {
    it.paths[run].get.responses['204'] = { description: 'Nothing.' }
  }),
  added('a status is added that only a new request header leads to', /`getRun` can respond with 304/, (it) => {
    it.paths[run].get.parameters = [{ name: 'If-None-Match', in: 'header', schema: { type: 'string' } }]
    it.paths[run].get.responses['304'] = { description: 'Not modified.' }
  }),
  breaking(
    'a status is added that a known request header leads to',
    /`getRun` can respond with 304/,
    (it) => {
      it.paths[run].get.responses['304'] = { description: 'Not modified.' }
    },
    (it) => {
      it.paths[run].get.parameters = [{ name: 'If-None-Match', in: 'header', schema: { type: 'string' } }]
    },
  ),
  added('an error status is added', /`getRun` can respond with 410 \(the run was erased\)/, (it) => {
    it.paths[run].get.responses['410'] = { description: 'The run was erased.' }
  }),
  changed('an error status is removed', /`getRun` no longer responds with 406/, (it) => {
    delete it.paths[run].get.responses['406']
  }),
  breaking('the media type of an error changes', /401 of every operation can no longer be `text\/plain`/, (it) => {
    const { content } = it.components.responses.Unauthorized
    content['application/problem+json'] = content['text/plain']
    delete content['text/plain']
  }),
  added('a response gets another media type', /200 of `getRun` can be `application\/cbor`/, (it) => {
    const { content } = it.paths[run].get.responses['200']
    content['application/cbor'] = content['application/json']
  }),
  changed(
    'bytes that are JSON are documented as JSON',
    /200 of `getRunArtifact` is no longer documented as bytes when it is `application\/json`/,
    (it) => {
      it.paths[artifact].get.responses['200'].content['application/json'].schema = {}
    },
    (it) => {
      it.paths[artifact].get.responses['200'].content['application/json'].schema = { type: 'string', format: 'binary' }
    },
  ),
  breaking('a response header is removed', /202 of `queueRemoteRun` no longer has the header `Location`/, (it) => {
    delete it.paths[queue].put.responses['202'].headers.Location
  }),
  added('a response header is added', /200 of `getRun` has the new header `ETag`/, (it) => {
    it.paths[run].get.responses['200'].headers.ETag = { schema: { type: 'string' } }
  }),
  breaking(
    'a response header becomes optional',
    /Header `Location` of .*202 of `queueRemoteRun` is not always present/,
    (it) => {
      it.components.headers.Location.required = false
    },
  ),
  breaking(
    'the value of a response header changes',
    /Header `Cache-Control` of response 200 of `streamRunEvents` .*`no-cache`/,
    (it) => {
      it.components.headers.NoStore.schema.const = 'no-cache'
    },
  ),
  changed('an example of a response changes', /`getRun` has new examples/, (it) => {
    it.components.examples.SucceededRun.value.attempts = 2
  }),
  changed('the description of a response changes', /200 of `listRuns` has a new description/, (it) => {
    it.paths[runs].get.responses['200'].description = 'Runs.'
  }),
]

export const memberChanges: ExpectedChange[] = [
  breaking('a member is removed', /`Run` no longer has the member `progress`/, (it) => {
    delete schemaOf(it, 'Run').properties.progress
    schemaOf(it, 'Run').required = schemaOf(it, 'Run').required.filter((name: string) => name !== 'progress')
  }),
  breaking('a member becomes optional', /`Run` does not always have `finishedAt`/, (it) => {
    schemaOf(it, 'Run').required.pop()
  }),
  added('an optional member is added', /`Run` has the new member `queue`/, (it) => {
    schemaOf(it, 'Run').properties.queue = { type: 'string' }
  }),
  added('a required member is added', /`Run` has the new member `queue`/, (it) => {
    schemaOf(it, 'Run').properties.queue = { type: 'string' }
    schemaOf(it, 'Run').required.push('queue')
  }),
  breaking('the type of a member changes', /`Run.attempts` must be `string` instead of `integer`/, (it) => {
    schemaOf(it, 'Run').properties.attempts.type = 'string'
  }),
  breaking('an integer becomes a number', /`Run.attempts` can be `number`/, (it) => {
    schemaOf(it, 'Run').properties.attempts.type = 'number'
  }),
  breaking('a member can be null, by its type', /`RunError.message` can also be `null`/, (it) => {
    schemaOf(it, 'RunError').properties.message.type = ['string', 'null']
  }),
  breaking('a member can be null, by alternatives', /`Run.createdAt` can also be `null`/, (it) => {
    const { properties } = schemaOf(it, 'Run')
    properties.createdAt = { oneOf: [properties.createdAt, { type: 'null' }] }
  }),
  changed('a member can no longer be null', /`RunProgress.message` can no longer be `null`/, (it) => {
    schemaOf(it, 'RunProgress').properties.message.type = 'string'
  }),
  changed('a list of types is replaced by equivalent alternatives', /`Workflow` has a new description/, (it) => {
    schemaOf(it, 'Workflow').properties.description = { oneOf: [{ type: 'string' }, { type: 'null' }] }
    schemaOf(it, 'Workflow').description = 'Changed, so that there is one change.'
  }),
  breaking('a member gets one value more', /`WaitingFor` can also be `quota`/, (it) => {
    schemaOf(it, 'WaitingFor').enum.push('quota')
  }),
  changed('a member gets one value less', /`WaitingFor` can no longer be `signIn`/, (it) => {
    schemaOf(it, 'WaitingFor').enum.pop()
  }),
  breaking('a value of both a filter and a response is removed', /`RunStatus` can no longer be `expired`/, (it) => {
    schemaOf(it, 'RunStatus').enum.pop()
  }),
  changed('a member gets a pattern', /`RunError.name` .*pattern/, (it) => {
    schemaOf(it, 'RunError').properties.name.pattern = '^[A-Z]'
  }),
  breaking('a maximum rises', /`RunPage.data` has the `maxItems` 200 instead of 100/, (it) => {
    schemaOf(it, 'RunPage').properties.data.maxItems = 200
  }),
  changed('a member gets a maximum', /`RunError.message` has the `maxLength` 4000/, (it) => {
    schemaOf(it, 'RunError').properties.message.maxLength = 4000
  }),
  added('an alternative with a discriminator is added', /`RunEvent` can also be `RunMetricEvent`/, (it) => {
    it.components.schemas.RunMetricEvent = { type: 'object', properties: { type: { const: 'metric' } } }
    schemaOf(it, 'RunEvent').oneOf.push({ $ref: '#/components/schemas/RunMetricEvent' })
  }),
  breaking('an alternative without a discriminator is added', /`Run.error` can also be `string`/, (it) => {
    schemaOf(it, 'Run').properties.error.oneOf.push({ type: 'string' })
  }),
  breaking('the type of list items changes', /An item of `WorkflowPage.data` must be `string`/, (it) => {
    schemaOf(it, 'WorkflowPage').properties.data.items = { type: 'string' }
  }),
  breaking(
    'a keyword is added whose effect cannot be judged',
    /`QueueRemoteRunRequest` has a different `not`/,
    (it) => {
      schemaOf(it, 'QueueRemoteRunRequest').not = { required: ['variableData'] }
    },
  ),
  breaking(
    'the target of a reference in a keyword changes',
    /`Workflow` does not always have `message`/,
    (it) => {
      schemaOf(it, 'RunError').required.pop()
    },
    (it) => (schemaOf(it, 'Workflow').allOf = [{ $ref: '#/components/schemas/RunError' }]),
  ),
  deprecated('a member is deprecated', /`Run.progress` is deprecated/, (it) => {
    schemaOf(it, 'Run').properties.progress.deprecated = true
  }),
  changed('a schema is renamed', /The document has a new description/, (it) => {
    it.components.schemas.RunFailure = schemaOf(it, 'RunError')
    schemaOf(it, 'Run').properties.error.oneOf[0].$ref = '#/components/schemas/RunFailure'
    it.info.description += ' Changed, so that there is one change.'
  }),
]
