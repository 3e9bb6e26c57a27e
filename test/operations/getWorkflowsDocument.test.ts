/** Tests getWorkflowsDocument by documented status. */
import { expect, test } from 'vitest'
import { executionContract } from '../../src/openapi/served-documents.ts'
import { describeOperation } from './describe-operation.ts'
import { testInvalidEntityTags } from './request-tests.ts'
import { send } from './requests.ts'
import approve from './workflows/approve.ts'
import greet from './workflows/greet.ts'

describeOperation(
  'getWorkflowsDocument',
  { worker: false },
  {
    200(subject) {
      test('is the document of v1 with the address of the service and an operation for each workflow', async () => {
        const { key } = await subject.service.createAccount()
        const { body } = await subject.call(key)
        const { document } = executionContract
        expect(body.servers).toEqual([{ url: subject.service.executionUrl, description: 'This service.' }])
        expect(body.info).toEqual(document.info)
        const workflows = await send(subject.service, 'listWorkflows', key)
        const ids = workflows.body.data.map(({ id }: { id: string }) => id)
        const added = Object.keys(body.paths).filter((path) => !(path in document.paths))
        const [queueing, answering] = [added.slice(0, ids.length), added.slice(ids.length)]
        expect(queueing).toEqual(ids.map((id: string) => `/v1/execution/queue-remote/${id}`))
        expect(queueing.map((path) => body.paths[path].put['x-workflow-id'])).toEqual(ids)
        const waits = ['approval', 'discount', 'reviewers']
        expect(answering).toEqual(waits.map((name) => `/v1/execution/runs/{runId}/waits/${name}`))
      })

      test('types the answer to each wait that a workflow declares', async () => {
        const { key } = await subject.service.createAccount()
        const { body } = await subject.call(key)
        const { parameters, put } = body.paths['/v1/execution/runs/{runId}/waits/approval']
        const template = body.paths['/v1/execution/runs/{runId}/waits/{name}'].put
        expect(parameters).toEqual([{ $ref: '#/components/parameters/RunId' }])
        expect(put).toMatchObject({
          operationId: 'completeWaitApproval',
          'x-wait-name': 'approval',
          'x-workflow-answers': { approve: 'Approve_RunAnswer_Approval' },
        })
        expect(put.responses).toEqual(template.responses)
        expect(put.description).toContain('Refunds above 100 € need a reason.')
        const { schema, examples } = put.requestBody.content['application/json']
        expect(schema).toMatchObject({ required: ['value'], additionalProperties: false })
        expect(schema.properties.value).toEqual({ $ref: '#/components/schemas/Approve_RunAnswer_Approval' })
        expect(body.components.schemas.Approve_RunAnswer_Approval).toEqual(approve.waits?.approval.schema)
        expect(examples.example.value).toEqual({ value: { approved: false } })
      })

      test('types the variables and the output of a workflow', async () => {
        const { key } = await subject.service.createAccount()
        const { body } = await subject.call(key)
        const { put } = body.paths['/v1/execution/queue-remote/greet']
        expect(put).toMatchObject({ operationId: 'queueGreet', summary: greet.title, 'x-workflow-version': '1.0.0' })
        const variables = { $ref: '#/components/schemas/Greet_Variables' }
        expect(put.requestBody.content['application/json'].schema.properties).toEqual({ variableData: variables })
        const contents = [200, 202].map((status) => put.responses[status].content['application/json'])
        for (const { schema } of contents) expect(schema).toEqual({ $ref: '#/components/schemas/Greet_Run' })
        const [{ succeeded }, { queued }] = contents.map(({ examples }) => examples)
        expect(queued.value).toMatchObject({ status: 'queued', workflowId: 'greet', output: null })
        expect(succeeded.value).toMatchObject({ status: 'succeeded', output: { greeting: '<greeting>' } })
        const { schemas } = body.components
        expect(schemas.Greet_Variables).toEqual(greet.variables)
        expect(schemas.Greet_Output).toEqual(greet.output)
        expect(schemas.Greet_Run.oneOf).toHaveLength(2)
        // In generated types, an enum combined with a constant is `never`.
        const { Run, RunMembers } = schemas
        const { required, properties } = schemas.Greet_Run.oneOf[0].allOf[1]
        expect(properties.status).toEqual({ type: 'string', const: 'succeeded' })
        expect(schemas.Greet_Run.oneOf[0].allOf[0]).toEqual({ $ref: '#/components/schemas/RunMembers' })
        expect({ ...RunMembers.properties, ...properties }).toEqual({ ...Run.properties, ...properties })
        expect(Object.keys(RunMembers.properties).filter((name) => name in properties)).toEqual([])
        expect([...RunMembers.required, ...required].sort()).toEqual([...Run.required].sort())
      })

      test('every example is accepted by the operation that shows it', async () => {
        const { key } = await subject.service.createAccount()
        const { body } = await subject.call(key)
        let queued = 0
        for (const path of Object.keys(body.paths)) {
          const { put } = body.paths[path]
          const id = put?.['x-workflow-id']
          if (id === undefined) continue
          for (const { value } of Object.values<{ value: object }>(
            put.requestBody.content['application/json'].examples ?? {},
          )) {
            const query = 'delaySeconds=3600'
            await send(subject.service, 'queueRemoteRun', key, { path: { workflowId: id }, query, body: value }).expect(
              202,
            )
            queued++
          }
        }
        expect(queued).toBeGreaterThan(5)
        const waits = Object.keys(approve.waits ?? {})
        for (const name of waits) {
          const { put } = body.paths[`/v1/execution/runs/{runId}/waits/${name}`]
          for (const { value } of Object.values<{ value: object }>(
            put.requestBody.content['application/json'].examples ?? {},
          )) {
            const path = { workflowId: 'approve' }
            const run = await send(subject.service, 'queueRemoteRun', key, { path, body: { variableData: {} } })
            await send(subject.service, 'completeWait', key, {
              path: { runId: run.body.id, name },
              body: value,
            }).expect(200)
          }
        }
      })
    },
    304(subject) {
      test('sends nothing when the document is the one in If-None-Match', async () => {
        const { key } = await subject.service.createAccount()
        const etag = String((await send(subject.service, 'getWorkflowsDocument', key)).headers.etag)
        for (const known of [etag, `W/${etag}`, `"other", ${etag}`, '*']) {
          const { headers, text } = await subject.call(key, { headers: { 'If-None-Match': known } })
          expect([headers.etag, text]).toEqual([etag, ''])
        }
        await send(subject.service, 'getWorkflowsDocument', key, { headers: { 'If-None-Match': '"other"' } }).expect(
          200,
        )
      })
    },
    400(subject) {
      testInvalidEntityTags(subject, 'If-None-Match')
    },
  },
)
