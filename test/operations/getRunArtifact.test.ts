/** Tests getRunArtifact by documented status. */
import { randomBytes } from 'node:crypto'
import { expect, test } from 'vitest'
import { artifactMediaTypes } from '../../src/domain/workflows/define-workflow.ts'
import { describeOperation } from './describe-operation.ts'
import { expectProblem } from './document.ts'
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
    206(subject) {
      const content = randomBytes(3000)
      const open = async (file: Buffer | string = content) => {
        const account = await subject.service.createAccount()
        const runId = await queueRun(subject.service, account)
        await putArtifact(subject.service, runId, 'application/pdf', file)
        const url = `${subject.service.executionUrl}/v1/execution/runs/${runId}/artifacts/${artifactName}`
        const authorization = { Authorization: `Bearer ${account.key}` }
        const get = (headers = {}) => fetch(url, { headers: { ...authorization, ...headers } })
        return { account, path: { runId, artifactName }, get }
      }

      test.each([
        ['bytes=0-0', 0, 0],
        ['bytes=0-999', 0, 999],
        ['bytes=2999-2999', 2999, 2999],
        ['bytes=1000-', 1000, 2999],
        ['bytes=1000-99999999999999999999', 1000, 2999],
        ['bytes=-1', 2999, 2999],
        ['bytes=-3000', 0, 2999],
        ['bytes=-5000', 0, 2999],
        ['BYTES=5-9', 5, 9],
      ])('returns %s', async (range, first, last) => {
        const { account, path, get } = await open()
        const { headers } = await subject.call(account.key, { path, headers: { Range: range } })
        expect(headers).toMatchObject({
          'content-range': `bytes ${first}-${last}/3000`,
          'content-length': String(last - first + 1),
          'content-type': 'application/pdf',
          'accept-ranges': 'bytes',
        })
        const response = await get({ Range: range })
        const bytes = Buffer.from(await response.arrayBuffer())
        expect(bytes.equals(content.subarray(first, last + 1))).toBe(true)
      })

      test.each(['bytes=0-1,5-6', 'bytes=9-5', 'bytes=', 'bytes=-', 'bytes=a-b', 'items=0-1', 'bytes 0-1'])(
        'ignores %s and returns the whole file',
        async (range) => {
          const { get } = await open()
          const response = await get({ Range: range })
          expect(response.status).toBe(200)
          expect(Buffer.from(await response.arrayBuffer()).equals(content)).toBe(true)
        },
      )

      test('resumes a download unless the artifact was replaced since', async () => {
        const { path, get } = await open()
        const etag = String((await get()).headers.get('etag'))
        const resume = async () => (await get({ Range: 'bytes=10-', 'If-Range': etag })).status
        expect(await resume()).toBe(206)
        for (const other of ['"other"', `W/${etag}`, new Date().toUTCString()]) {
          expect((await get({ Range: 'bytes=10-', 'If-Range': other })).status).toBe(200)
        }
        await subject.service.change('UPDATE artifacts SET created_at = created_at + 1 WHERE run_id = ?', path.runId)
        expect(await resume()).toBe(200)
      })

      test('returns an empty file whole, as no Content-Range describes it', async () => {
        const { get } = await open('')
        expect((await get({ Range: 'bytes=-5' })).status).toBe(200)
      })
    },
    400(subject) {
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
    404(subject) {
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
    },
    416(subject) {
      test.each([
        ['bytes=5-', 'Hello'],
        ['bytes=99999999999999999999-', 'Hello'],
        ['bytes=-0', 'Hello'],
        ['bytes=0-', ''],
      ])('refuses %s of "%s", and says how many bytes there are', async (range, content) => {
        const account = await subject.service.createAccount()
        const runId = await queueRun(subject.service, account)
        await putArtifact(subject.service, runId, 'text/plain', content)
        const response = await subject.call(account.key, { path: { runId, artifactName }, headers: { Range: range } })
        expectProblem(subject.operation, response, {
          kind: 'range-not-satisfiable',
          title: 'Range not satisfiable',
          status: 416,
          detail: `The artifact has ${content.length} bytes; the range begins after its end.`,
          errors: [{ header: 'Range', detail: 'begins after the end of the artifact' }],
        })
        expect(response.headers['content-range']).toBe(`bytes */${content.length}`)
      })
    },
  },
)
