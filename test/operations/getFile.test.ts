/** Tests getFile by documented status. */
import { randomBytes } from 'node:crypto'
import { expect, test } from 'vitest'
import { describeOperation } from './describe-operation.ts'
import { expectProblem } from './document.ts'
import { createFile, queueRun, send } from './requests.ts'

describeOperation(
  'getFile',
  { worker: false },
  {
    200(subject) {
      test.each([
        ['application/pdf', 'application/pdf'],
        ['text/plain; charset=utf-8', 'text/plain'],
        ['text/html', 'application/octet-stream'],
      ])('returns a file of type %s as %s', async (type, served) => {
        const account = await subject.service.createAccount()
        const content = randomBytes(3000)
        const upload = { query: 'name=a%22b%20%C3%BC.x', raw: content, headers: { 'Content-Type': type } }
        const { body } = await send(subject.service, 'createFile', account.key, upload).expect(201)
        const { headers } = await subject.call(account.key, { path: { fileId: body.id.toUpperCase() } })
        expect(headers).toMatchObject({
          'content-type': served,
          'content-length': '3000',
          'content-disposition': 'attachment; filename="a\\"b _.x"; filename*=UTF-8\'\'a%22b%20%C3%BC.x',
          'x-content-type-options': 'nosniff',
          etag: `"${body.sha256}"`,
        })
        const url = `${subject.service.executionUrl}/v1/execution/files/${body.id}`
        const init = { headers: { Authorization: `Bearer ${account.key}` } }
        expect(Buffer.from(await (await fetch(url, init)).arrayBuffer()).equals(content)).toBe(true)
        const head = await fetch(url, { ...init, method: 'HEAD' })
        expect([head.status, head.headers.get('content-length')]).toEqual([200, '3000'])
      })
    },
    206(subject) {
      test.each([
        ['bytes=0-0', 0, 0],
        ['bytes=1048570-1048590', 1_048_570, 1_048_590],
        ['bytes=1999999-', 1_999_999, 1_999_999],
        ['bytes=-1000', 1_999_000, 1_999_999],
      ])('returns %s', async (range, first, last) => {
        const account = await subject.service.createAccount()
        const content = randomBytes(2_000_000)
        const path = { fileId: await createFile(subject.service, account, content) }
        const { headers } = await subject.call(account.key, { path, headers: { Range: range } })
        expect(headers).toMatchObject({
          'content-range': `bytes ${first}-${last}/2000000`,
          'content-length': String(last - first + 1),
          'accept-ranges': 'bytes',
        })
        const url = `${subject.service.executionUrl}/v1/execution/files/${path.fileId}`
        const get = (more: object) => fetch(url, { headers: { Authorization: `Bearer ${account.key}`, ...more } })
        const sent = Buffer.from(await (await get({ Range: range })).arrayBuffer())
        expect(sent.equals(content.subarray(first, last + 1))).toBe(true)
        expect((await get({ Range: range, 'If-Range': String(headers.etag) })).status).toBe(206)
        expect((await get({ Range: range, 'If-Range': '"other"' })).status).toBe(200)
      })
    },
    404(subject) {
      test('does not find a file that has expired, unless a run refers to it', async () => {
        const { service, operation } = subject
        const account = await service.createAccount()
        const path = { fileId: await createFile(service, account) }
        await service.change('UPDATE files SET expires_at = 1 WHERE id = ?', path.fileId)
        expectProblem(operation, await subject.call(account.key, { path }), {
          ...{ kind: 'not-found', title: 'Not found', status: 404, detail: 'No such file in this account.' },
        })
        const runId = await queueRun(service, account)
        await service.change('INSERT INTO run_files (run_id, file_id) VALUES (?, ?)', runId, path.fileId)
        await send(service, 'getFile', account.key, { path }).expect(200)
      })
    },
    416(subject) {
      test.each(['bytes=5-', 'bytes=-0'])('refuses %s of 5 bytes', async (range) => {
        const account = await subject.service.createAccount()
        const path = { fileId: await createFile(subject.service, account) }
        const response = await subject.call(account.key, { path, headers: { Range: range } })
        expectProblem(subject.operation, response, {
          ...{ kind: 'range-not-satisfiable', title: 'Range not satisfiable', status: 416 },
          detail: 'The file has 5 bytes; the range begins after its end.',
          errors: [{ header: 'Range', detail: 'begins after the end of the file' }],
        })
        expect(response.headers['content-range']).toBe('bytes */5')
      })
    },
  },
)
