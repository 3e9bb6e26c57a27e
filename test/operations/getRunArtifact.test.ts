/** getRunArtifact: every status that its document has. */
import { randomBytes } from 'node:crypto'
import { expect, test } from 'vitest'
import { artifactMediaTypes } from '../../src/domain/runs/artifacts.ts'
import { hidesOtherAccounts, refusesBadCredentials, refusesOtherScopes } from './alike-callers.ts'
import { asksToTryAgain, saysNothingOfFaults } from './alike-faults.ts'
import { limitsRequests } from './alike-limits.ts'
import { refusesOtherMediaTypes, refusesWhatIsNotDocumented } from './alike-requests.ts'
import { expectProblem } from './document.ts'
import { describeOperation } from './operation.ts'
import { putArtifact, queueRun, send } from './requests.ts'

const artifactName = 'hello.txt'

describeOperation(
  'getRunArtifact',
  { worker: false },
  {
    200(subject) {
      test.each(artifactMediaTypes)('gives the bytes of an artifact that is %s as they are', async (mediaType) => {
        const account = await subject.service.createAccount()
        const runId = await queueRun(subject.service, account)
        // The client of the tests reads JSON as such.
        const content = mediaType === 'application/json' ? Buffer.from('["ü"]') : randomBytes(3000)
        await putArtifact(subject.service, runId, mediaType, content)
        const answer = await subject.called(account.key, { path: { runId, artifactName } })
        expect(answer.headers).toMatchObject({
          'content-type': mediaType,
          'content-length': String(content.length),
          'content-disposition': 'attachment; filename="hello.txt"',
          'x-content-type-options': 'nosniff',
        })
        const url = `${subject.service.executionUrl}/v1/execution/runs/${runId}/artifacts/${artifactName}`
        const fetched = await fetch(url, { headers: { Authorization: `Bearer ${account.key}` } })
        expect(Buffer.from(await fetched.arrayBuffer()).equals(content)).toBe(true)
      })

      test('gives an artifact of no bytes', async () => {
        const account = await subject.service.createAccount()
        const runId = await queueRun(subject.service, account)
        await putArtifact(subject.service, runId, 'text/plain', '')
        const answer = await subject.called(account.key, { path: { runId, artifactName } })
        expect(answer.headers['content-length']).toBe('0')
      })

      test('gives what the run lists', async () => {
        const account = await subject.service.createAccount()
        const runId = await queueRun(subject.service, account)
        await putArtifact(subject.service, runId)
        const { body } = await send(subject.service, 'getRun', account.key, { path: { runId } })
        const [artifact] = body.artifacts
        expect(artifact).toMatchObject({ name: artifactName, mediaType: 'text/plain', sizeBytes: 5 })
        expect(Date.parse(artifact.expiresAt) - Date.parse(artifact.createdAt)).toBe(30 * 24 * 60 * 60 * 1000)
        expect((await subject.called(account.key, { path: { runId, artifactName: artifact.name } })).text).toBe('Hello')
      })
    },
    400(subject) {
      refusesWhatIsNotDocumented(subject)

      test.each(['.hidden', '-', '..%2Fescape', 'a%20b', 'a%22b', 'ä', 'a'.repeat(101)])(
        'refuses the name %s',
        async (name) => {
          const { request } = await subject.caller()
          const answer = await subject.answered({
            ...request,
            path: request.path.replace(artifactName, encodeURI(decodeURI(name))),
          })
          const errors = [{ parameter: 'artifactName', detail: expect.any(String) }]
          expectProblem(subject.operation, answer, {
            kind: 'invalid-request',
            title: 'Invalid request',
            status: 400,
            errors,
          })
        },
      )
    },
    401: refusesBadCredentials,
    403: refusesOtherScopes,
    404(subject) {
      hidesOtherAccounts(subject)

      const notFound = {
        kind: 'not-found',
        title: 'Not found',
        status: 404,
        detail: 'No such artifact in this account.',
      }

      test.each(['other.txt', 'Hello.txt', 'hello.txt.'])('does not know the name %s', async (name) => {
        const { request } = await subject.caller()
        const path = request.path.replace(artifactName, name)
        expectProblem(subject.operation, await subject.answered({ ...request, path }), notFound)
      })

      test('does not know an artifact whose time is over, and the run does not list it', async () => {
        const { account, request } = await subject.caller()
        const [, runId = ''] = /runs\/([^/]+)/.exec(request.path) ?? []
        const kept = 30 * 24 * 60 * 60 * 1000
        const age = 'UPDATE artifacts SET created_at = ? WHERE run_id = ?'
        await subject.service.change(age, Date.now() - kept, runId)
        expectProblem(subject.operation, await subject.answered(request), notFound)
        const { body } = await send(subject.service, 'getRun', account.key, { path: { runId } })
        expect(body.artifacts).toEqual([])
      })
    },
    406: refusesOtherMediaTypes,
    429: limitsRequests,
    500: saysNothingOfFaults,
    503: asksToTryAgain,
  },
)
