/** Tests createFile by documented status. */
import { hash, randomBytes } from 'node:crypto'
import { connect } from 'node:net'
import { Readable } from 'node:stream'
import { expect, test } from 'vitest'
import { fileMegabytesMax, storageQuotaMegabytes } from '../support/service.ts'
import { describeOperation, type Subject } from './describe-operation.ts'
import { expectProblem } from './document.ts'
import { expectInvalid } from './guards.ts'
import { createFile, send } from './requests.ts'

const day = 24 * 60 * 60 * 1000
const bytesMax = fileMegabytesMax * 1024 * 1024

const rowsOf = ({ service }: Subject, table: 'files' | 'file_parts', accountId: string) =>
  service.rows(
    table === 'files'
      ? 'SELECT * FROM files WHERE account_id = ?'
      : 'SELECT file_id, position FROM file_parts WHERE file_id IN (SELECT id FROM files WHERE account_id = ?)',
    accountId,
  )

describeOperation(
  'createFile',
  { worker: false },
  {
    201(subject) {
      test('stores the content, and says what it has', async () => {
        const account = await subject.service.createAccount()
        const raw = randomBytes(70_000)
        const headers = { 'Content-Type': 'Application/PDF' }
        const response = await subject.call(account.key, { query: 'name=R%C3%A9sum%C3%A9%201.pdf', raw, headers })
        const { id, createdAt, expiresAt } = response.body
        expect(response.body).toMatchObject({
          ...{ name: 'Résumé 1.pdf', mediaType: 'application/pdf', bytes: raw.length },
          sha256: hash('sha256', raw),
        })
        expect(response.headers.location).toBe(`/v1/execution/files/${id}`)
        expect(Date.parse(expiresAt) - Date.parse(createdAt)).toBe(7 * day)
        const audited = "SELECT action, subject_name FROM audit_log WHERE account_id = ? AND action LIKE 'file.%'"
        expect(await subject.service.rows(audited, account.id)).toEqual([
          { action: 'file.created', subject_name: 'Résumé 1.pdf' },
        ])
      })

      test('an empty file without name and media type has the defaults', async () => {
        const account = await subject.service.createAccount()
        const { headers } = await subject.call(account.key, { headers: { 'Content-Length': '0' } })
        const path = { fileId: String(headers.location).split('/').at(-1) as string }
        const found = await send(subject.service, 'getFile', account.key, { path }).expect(200)
        expect(found.headers).toMatchObject({
          'content-length': '0',
          'content-type': 'application/octet-stream',
          'content-disposition': 'attachment; filename="file"',
        })
      })

      test('the same content with the same name and media type is the same file, which expires later', async () => {
        const { service } = subject
        const [account, other] = [await service.createAccount(), await service.createAccount()]
        const raw = randomBytes(1_500_000)
        const first = (await subject.call(account.key, { query: 'name=a', raw })).body
        await service.change('UPDATE files SET expires_at = expires_at - 1000 WHERE id = ?', first.id)
        const again = (await subject.call(account.key, { query: 'name=a', raw })).body
        expect([again.id, again.createdAt]).toEqual([first.id, first.createdAt])
        expect(Date.parse(again.expiresAt)).toBeGreaterThanOrEqual(Date.parse(first.expiresAt))
        expect(await rowsOf(subject, 'files', account.id)).toHaveLength(1)
        expect(await rowsOf(subject, 'file_parts', account.id)).toHaveLength(1)
        const headers = { 'Content-Type': 'text/plain' }
        const others = [
          await createFile(service, account, raw, 'name=b'),
          (await subject.call(account.key, { query: 'name=a', raw, headers })).body.id,
          await createFile(service, other, raw, 'name=a'),
        ]
        expect(new Set([first.id, ...others]).size).toBe(4)
      })

      test('equal uploads at the same time make one file', async () => {
        const account = await subject.service.createAccount()
        const raw = randomBytes(5000)
        const uploads = Array.from({ length: 8 }, () => createFile(subject.service, account, raw))
        expect(new Set(await Promise.all(uploads)).size).toBe(1)
        expect(await rowsOf(subject, 'files', account.id)).toHaveLength(1)
      })

      test('an upload that its client interrupts leaves nothing', async () => {
        const account = await subject.service.createAccount()
        const { port } = new URL(subject.service.executionUrl)
        const socket = connect(Number(port), '127.0.0.1')
        const head = ['POST /v1/execution/files HTTP/1.1', 'Host: localhost', `Authorization: Bearer ${account.key}`]
        socket.write(`${[...head, 'Content-Length: 2000000'].join('\r\n')}\r\n\r\n`)
        socket.write(randomBytes(1_200_000))
        await expect.poll(() => rowsOf(subject, 'files', account.id)).toHaveLength(1)
        socket.destroy()
        await expect.poll(() => rowsOf(subject, 'files', account.id)).toEqual([])
      })
    },
    400(subject) {
      test.each([
        ['..', 'must not be . or ..'],
        ['%C3%A9'.repeat(128), 'has more than 255 bytes in UTF-8'],
        ['a%2Fb', expect.stringContaining('must match pattern')],
        ['a%5Cb', expect.stringContaining('must match pattern')],
        ['a%0Ab', expect.stringContaining('must match pattern')],
        ['', "Empty value found for query parameter 'name'"],
      ])('refuses the name %s', async (name, detail) => {
        const change = (request: { path: string }) => ({ ...request, path: request.path.replace('invoice.pdf', name) })
        await expectInvalid(subject, change as never, expect.arrayContaining([{ parameter: 'name', detail }]) as never)
      })
    },
    413(subject) {
      const tooLarge = {
        ...{ kind: 'content-too-large', title: 'Content too large', status: 413 },
        detail: `The body may have at most ${bytesMax} bytes.`,
      }

      test('refuses content that is announced as larger than FILE_MAX_MB, before it arrives', async () => {
        const account = await subject.service.createAccount()
        const response = await subject.call(account.key, { raw: Buffer.alloc(bytesMax + 1) })
        expectProblem(subject.operation, response, tooLarge)
        expect(response.headers.connection).toBe('close')
        expect(await rowsOf(subject, 'files', account.id)).toEqual([])
      })

      test('refuses content that turns out to be larger, and stores nothing', async () => {
        const account = await subject.service.createAccount()
        const url = `${subject.service.executionUrl}/v1/execution/files`
        async function* content() {
          for (let sent = 0; sent <= bytesMax; sent += 65_536) yield new Uint8Array(65_536)
        }
        const body = Readable.toWeb(Readable.from(content())) as unknown as RequestInit['body']
        const headers = { Authorization: `Bearer ${account.key}` }
        const init = { method: 'POST', headers, body, duplex: 'half' } as RequestInit
        const response = await fetch(url, init)
        expect([response.status, (await response.json()).detail]).toEqual([413, tooLarge.detail])
        await expect.poll(() => rowsOf(subject, 'files', account.id)).toEqual([])
      })

      test('accepts content of exactly that size', async () => {
        const account = await subject.service.createAccount()
        await createFile(subject.service, account, Buffer.alloc(bytesMax))
      })
    },
    415(subject) {
      test('refuses the envelope of a form, and says how to send the file itself', async () => {
        const account = await subject.service.createAccount()
        const headers = { 'Content-Type': 'multipart/form-data; boundary=x' }
        expectProblem(subject.operation, await subject.call(account.key, { raw: Buffer.from('--x--'), headers }), {
          ...{ kind: 'unsupported-media-type', title: 'Unsupported media type', status: 415 },
          detail:
            'Send the file itself as the body, with its own media type: with curl, --data-binary @file and not -F.',
        })
        expect(await rowsOf(subject, 'files', account.id)).toEqual([])
      })

      test.each([
        { 'Content-Type': 'pdf' },
        { 'Content-Encoding': 'gzip' },
        { 'Content-Type': `a/${'b'.repeat(254)}` },
      ])('refuses a body with %o', async (headers) => {
        const account = await subject.service.createAccount()
        const response = await subject.call(account.key, { raw: Buffer.from('Hello'), headers })
        expectProblem(subject.operation, response, {
          ...{ kind: 'unsupported-media-type', title: 'Unsupported media type', status: 415 },
          detail: 'Send the body with a valid media type, and without a content coding.',
        })
      })
    },
    507(subject) {
      test('refuses a file beyond the storage quota, and stores nothing of it', async () => {
        const account = await subject.service.createAccount()
        for (const name of ['a', 'b']) await createFile(subject.service, account, randomBytes(bytesMax), `name=${name}`)
        const response = await subject.call(account.key, { query: 'name=c', raw: randomBytes(bytesMax) })
        expectProblem(subject.operation, response, {
          ...{ kind: 'storage-quota-exceeded', title: 'Storage quota exceeded', status: 507 },
          detail: expect.stringContaining(`storage quota of ${storageQuotaMegabytes} MB`),
        })
        expect(await rowsOf(subject, 'files', account.id)).toHaveLength(2)
      })
    },
  },
)
