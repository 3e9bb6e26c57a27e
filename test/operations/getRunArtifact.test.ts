/** Tests getRunArtifact by documented status. */
import { randomBytes } from 'node:crypto'
import { expect, test } from 'vitest'
import { artifactMediaTypes } from '../../src/domain/workflows/define-workflow.ts'
import { testForbidden, testNotFound, testUnauthorized } from './caller-tests.ts'
import { describeOperation } from './describe-operation.ts'
import { expectProblem } from './document.ts'
import { testInternalError, testUnavailable } from './failure-tests.ts'
import { testRateLimit } from './rate-limit-tests.ts'
import { testInvalidRequest, testNotAcceptable } from './request-tests.ts'
import { putArtifact, queueRun, send } from './requests.ts'

const artifactName = 'hello.txt'

describeOperation(
  'getRunArtifact',
  { worker: false },
  {
    200(subject) {
      test.each(artifactMediaTypes)('returns an artifact of type %s unchanged', async (mediaType) => {
        const account = await subject.service.createAccount()
        const runId = await queueRun(subject.service, account)
        // supertest parses JSON.
        const content = mediaType === 'application/json' ? Buffer.from('["ü"]') : randomBytes(3000)
        await putArtifact(subject.service, runId, mediaType, content)
        const response = await subject.call(account.key, { path: { runId, artifactName } })
        expect(response.headers).toMatchObject({
          'content-type': mediaType,
          'content-length': String(content.length),
          'content-disposition': 'attachment; filename="hello.txt"',
          'x-content-type-options': 'nosniff',
        })
        const url = `${subject.service.executionUrl}/v1/execution/runs/${runId}/artifacts/${artifactName}`
        const fetched = await fetch(url, { headers: { Authorization: `Bearer ${account.key}` } })
        expect(Buffer.from(await fetched.arrayBuffer()).equals(content)).toBe(true)
      })

      test('returns an empty artifact', async () => {
        const account = await subject.service.createAccount()
        const runId = await queueRun(subject.service, account)
        await putArtifact(subject.service, runId, 'text/plain', '')
        const response = await subject.call(account.key, { path: { runId, artifactName } })
        expect(response.headers['content-length']).toBe('0')
      })

      test('returns what the run lists', async () => {
        const account = await subject.service.createAccount()
        const runId = await queueRun(subject.service, account)
        await putArtifact(subject.service, runId)
        const { body } = await send(subject.service, 'getRun', account.key, { path: { runId } })
        const [artifact] = body.artifacts
        expect(artifact).toMatchObject({ name: artifactName, mediaType: 'text/plain', sizeBytes: 5 })
        expect(Date.parse(artifact.expiresAt) - Date.parse(artifact.createdAt)).toBe(30 * 24 * 60 * 60 * 1000)
        expect((await subject.call(account.key, { path: { runId, artifactName: artifact.name } })).text).toBe('Hello')
      })
    },
    400(subject) {
      testInvalidRequest(subject)

      test.each(['.hidden', '-', '..%2Fescape', 'a%20b', 'a%22b', 'ä', 'a'.repeat(101)])(
        'refuses the name %s',
        async (name) => {
          const { request } = await subject.caller()
          const response = await subject.send({
            ...request,
            path: request.path.replace(artifactName, encodeURI(decodeURI(name))),
          })
          const errors = [{ parameter: 'artifactName', detail: expect.any(String) }]
          expectProblem(subject.operation, response, {
            kind: 'invalid-request',
            title: 'Invalid request',
            status: 400,
            errors,
          })
        },
      )
    },
    401: testUnauthorized,
    403: testForbidden,
    404(subject) {
      testNotFound(subject)

      const notFound = {
        kind: 'not-found',
        title: 'Not found',
        status: 404,
        detail: 'No such artifact in this account.',
      }

      test.each(['other.txt', 'Hello.txt', 'hello.txt.'])('the name %s is not found', async (name) => {
        const { request } = await subject.caller()
        const path = request.path.replace(artifactName, name)
        expectProblem(subject.operation, await subject.send({ ...request, path }), notFound)
      })

      test('an expired artifact is neither found nor listed', async () => {
        const { account, request } = await subject.caller()
        const [, runId = ''] = /runs\/([^/]+)/.exec(request.path) ?? []
        const kept = 30 * 24 * 60 * 60 * 1000
        const age = 'UPDATE artifacts SET created_at = ? WHERE run_id = ?'
        await subject.service.change(age, Date.now() - kept, runId)
        expectProblem(subject.operation, await subject.send(request), notFound)
        const { body } = await send(subject.service, 'getRun', account.key, { path: { runId } })
        expect(body.artifacts).toEqual([])
      })
    },
    406: testNotAcceptable,
    429: testRateLimit,
    500: testInternalError,
    503: testUnavailable,
  },
)
