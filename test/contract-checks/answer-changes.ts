/** Changes of what a caller is answered with, each with the judgement that a consumer of v1 would give. */
import { queue, run, runs, schemaOf } from './altered.ts'
import type { Alteration } from './request-changes.ts'

export const statusChanges: Alteration[] = [
  {
    title: 'a success status is removed',
    alter: (it) => delete it.paths[queue].put.responses['200'],
    kind: 'breaking',
    says: /`queueRemoteRun` does not answer 200 any more/,
  },
  {
    title: 'a success status is added',
    alter: (it) => (it.paths[run].get.responses['204'] = { description: 'Nothing.' }),
    kind: 'breaking',
    says: /`getRun` may answer 204/,
  },
  {
    title: 'an error status is added',
    alter: (it) => (it.paths[run].get.responses['410'] = { description: 'The run was erased.' }),
    kind: 'added',
    says: /`getRun` may answer 410 \(the run was erased\)/,
  },
  {
    title: 'an error status is removed',
    alter: (it) => delete it.paths[run].get.responses['406'],
    kind: 'changed',
    says: /`getRun` does not answer 406 any more/,
  },
  {
    title: 'an error gets another media type',
    alter: (it) => {
      const { content } = it.components.responses.Unauthorized
      content['application/problem+json'] = content['text/plain']
      delete content['text/plain']
    },
    kind: 'breaking',
    says: /401 of every operation is never `text\/plain`/,
  },
  {
    title: 'an answer gets a media type more',
    alter: (it) => {
      const { content } = it.paths[run].get.responses['200']
      content['application/cbor'] = content['application/json']
    },
    kind: 'added',
    says: /200 of `getRun` may be `application\/cbor`/,
  },
  {
    title: 'a response header is removed',
    alter: (it) => delete it.paths[queue].put.responses['202'].headers.Location,
    kind: 'breaking',
    says: /202 of `queueRemoteRun` does not have the header `Location`/,
  },
  {
    title: 'a response header is added',
    alter: (it) => (it.paths[run].get.responses['200'].headers.ETag = { schema: { type: 'string' } }),
    kind: 'added',
    says: /200 of `getRun` has the new header `ETag`/,
  },
  {
    title: 'a response header may be absent',
    alter: (it) => (it.components.headers.Location.required = false),
    kind: 'breaking',
    says: /Header `Location` of .*202 of `queueRemoteRun` may be absent/,
  },
  {
    title: 'a response header takes another value',
    alter: (it) => (it.components.headers.NoStore.schema.const = 'no-cache'),
    kind: 'breaking',
    says: /Header `Cache-Control` of answer 200 of `streamRunEvents` .*`no-cache`/,
  },
  {
    title: 'an example of an answer changes',
    alter: (it) => (it.components.examples.SucceededRun.value.attempts = 2),
    kind: 'changed',
    says: /`getRun` has other examples/,
  },
  {
    title: 'the description of an answer changes',
    alter: (it) => (it.paths[runs].get.responses['200'].description = 'Runs.'),
    kind: 'changed',
    says: /200 of `listRuns` is described in other words/,
  },
]

export const memberChanges: Alteration[] = [
  {
    title: 'a member of an answer is removed',
    alter: (it) => {
      delete schemaOf(it, 'Run').properties.progress
      schemaOf(it, 'Run').required = schemaOf(it, 'Run').required.filter((name: string) => name !== 'progress')
    },
    kind: 'breaking',
    says: /`Run` does not have the member `progress`/,
  },
  {
    title: 'a member of an answer may be absent',
    alter: (it) => schemaOf(it, 'Run').required.pop(),
    kind: 'breaking',
    says: /`Run` .*without `finishedAt`/,
  },
  {
    title: 'an answer that names all its members gets an optional one',
    alter: (it) => (schemaOf(it, 'Run').properties.queue = { type: 'string' }),
    kind: 'added',
    says: /`Run` has the new member `queue`/,
  },
  {
    title: 'an answer that names all its members gets one that is always there',
    alter: (it) => {
      schemaOf(it, 'Run').properties.queue = { type: 'string' }
      schemaOf(it, 'Run').required.push('queue')
    },
    kind: 'added',
    says: /`Run` has the new member `queue`/,
  },
  {
    title: 'a member of an answer has another type',
    alter: (it) => (schemaOf(it, 'Run').properties.attempts.type = 'string'),
    kind: 'breaking',
    says: /`Run.attempts` may be `string`/,
  },
  {
    title: 'a whole number of an answer may have a fraction',
    alter: (it) => (schemaOf(it, 'Run').properties.attempts.type = 'number'),
    kind: 'breaking',
    says: /`Run.attempts` may be `number`/,
  },
  {
    title: 'a member of an answer may be null, by its type',
    alter: (it) => (schemaOf(it, 'RunError').properties.message.type = ['string', 'null']),
    kind: 'breaking',
    says: /`RunError.message` may be `null`/,
  },
  {
    title: 'a member of an answer may be null, by alternatives',
    alter: (it) => {
      const { properties } = schemaOf(it, 'Run')
      properties.createdAt = { oneOf: [properties.createdAt, { type: 'null' }] }
    },
    kind: 'breaking',
    says: /`Run.createdAt` may be `null`/,
  },
  {
    title: 'a member of an answer is never null any more',
    alter: (it) => (schemaOf(it, 'RunProgress').properties.message.type = 'string'),
    kind: 'changed',
    says: /`RunProgress.message` is never `null`/,
  },
  {
    title: 'the same type is written by alternatives instead of a list',
    alter: (it) => {
      schemaOf(it, 'RunProgress').properties.message = {
        description: 'What it is doing.',
        oneOf: [{ type: 'string' }, { type: 'null' }],
      }
      schemaOf(it, 'RunProgress').description = 'Other words, so that there is one change.'
    },
    kind: 'changed',
    says: /`RunProgress` is described in other words/,
  },
  {
    title: 'an answer may have a value more',
    alter: (it) => schemaOf(it, 'Run').properties.waitingFor.oneOf[0].enum.push('quota'),
    kind: 'breaking',
    says: /`Run.waitingFor` may be `quota`/,
  },
  {
    title: 'an answer has a value less',
    alter: (it) => schemaOf(it, 'Run').properties.waitingFor.oneOf[0].enum.pop(),
    kind: 'changed',
    says: /`Run.waitingFor` is never `browserContext`/,
  },
  {
    title: 'a value goes that filters take and answers have',
    alter: (it) => schemaOf(it, 'RunStatus').enum.pop(),
    kind: 'breaking',
    says: /`RunStatus` does not take `expired`/,
  },
  {
    title: 'an answer gets a pattern',
    alter: (it) => (schemaOf(it, 'RunError').properties.name.pattern = '^[A-Z]'),
    kind: 'changed',
    says: /`RunError.name` .*pattern/,
  },
  {
    title: 'an answer may be longer',
    alter: (it) => (schemaOf(it, 'RunPage').properties.data.maxItems = 200),
    kind: 'breaking',
    says: /`RunPage.data` has the `maxItems` 200 instead of 100/,
  },
  {
    title: 'an answer gets a bound',
    alter: (it) => (schemaOf(it, 'RunError').properties.message.maxLength = 4000),
    kind: 'changed',
    says: /`RunError.message` has the `maxLength` 4000/,
  },
  {
    title: 'a stream gets a kind of event more, which its discriminator tells',
    alter: (it) => {
      it.components.schemas.RunMetricEvent = { type: 'object', properties: { type: { const: 'metric' } } }
      schemaOf(it, 'RunEvent').oneOf.push({ $ref: '#/components/schemas/RunMetricEvent' })
    },
    kind: 'added',
    says: /`RunEvent` may be `RunMetricEvent` too/,
  },
  {
    title: 'a member of an answer may be something else too, and nothing tells which',
    alter: (it) => schemaOf(it, 'Run').properties.error.oneOf.push({ type: 'string' }),
    kind: 'breaking',
    says: /`Run.error` may be `string` too/,
  },
  {
    title: 'the items of a list change',
    alter: (it) => (schemaOf(it, 'WorkflowList').properties.data.items = { type: 'string' }),
    kind: 'breaking',
    says: /An item of `WorkflowList.data` may be `string`/,
  },
  {
    title: 'a condition is added that the comparison cannot judge',
    alter: (it) => (schemaOf(it, 'QueueRemoteRunRequest').not = { required: ['variableData'] }),
    kind: 'breaking',
    says: /`QueueRemoteRunRequest` has another `not`/,
  },
  {
    title: 'what a condition refers to changes',
    prepare: (it) => (schemaOf(it, 'Workflow').allOf = [{ $ref: '#/components/schemas/RunError' }]),
    alter: (it) => schemaOf(it, 'RunError').required.pop(),
    kind: 'breaking',
    says: /`Workflow` has another `allOf`/,
  },
  {
    title: 'a member of an answer is deprecated',
    alter: (it) => (schemaOf(it, 'Run').properties.progress.deprecated = true),
    kind: 'deprecated',
    says: /`Run.progress` is deprecated/,
  },
  {
    title: 'a schema is renamed',
    alter: (it) => {
      it.components.schemas.RunFailure = schemaOf(it, 'RunError')
      schemaOf(it, 'Run').properties.error.oneOf[0].$ref = '#/components/schemas/RunFailure'
      it.info.description += ' One more word, so that there is one change.'
    },
    kind: 'changed',
    says: /The document is described in other words/,
  },
]
