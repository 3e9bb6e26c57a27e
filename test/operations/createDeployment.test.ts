/** Tests createDeployment by documented status. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { newDirectory } from '../support/domain.ts'
import { describeOperation } from './describe-operation.ts'
import { expectProblem } from './document.ts'
import { reverseText, send } from './requests.ts'

describeOperation(
  'createDeployment',
  { worker: false },
  {
    200(subject) {
      test('the same content is the same deployment, however its files are ordered and encoded', async () => {
        const account = await subject.service.createAccount()
        const { files, modules } = reverseText('1.0.0')
        const [file = { path: '', content: '' }] = files
        const data = { path: 'data.txt', content: 'Grüße' }
        const body = { files: [file, data], modules }
        const created = await send(subject.service, 'createDeployment', account.key, { body }).expect(201)
        const encoded = { ...file, content: Buffer.from(file.content).toString('base64'), encoding: 'base64' }
        const again = await subject.call(account.key, { body: { files: [data, encoded], modules } })
        const { previousDeployment, changes } = again.body
        expect(again.body).toEqual({ ...created.body, previousDeployment, changes })
        expect([previousDeployment.id, changes[0].before]).toEqual([created.body.id, '1.0.0'])
        expect(again.headers.location).toBe(created.headers.location)
      })
    },
    201(subject) {
      test('the account sees the workflows at once and no other account does, and the audit log names the key', async () => {
        const [account, other] = [await subject.service.createAccount(), await subject.service.createAccount()]
        const { body, headers } = await subject.call(account.key, { body: reverseText('1.0.0') })
        expect(headers.location).toBe(`/v1/execution/deployments/${body.id}`)
        const workflows = [{ id: 'reverse-text', version: '1.0.0', title: 'Reverse' }]
        expect(body).toMatchObject({ current: true, workflows, breakingChanges: [] })
        expect(body.changes).toEqual([{ workflowId: 'reverse-text', before: null, after: '1.0.0', fallsBack: false }])
        const get = (key: string) => send(subject.service, 'getWorkflow', key, { path: { workflowId: 'reverse-text' } })
        expect((await get(account.key)).body.deploymentId).toBe(body.id)
        expect((await get(other.key)).status).toBe(404)
        const next = await subject.call(account.key, { body: reverseText('1.1.0') })
        expect(next.body.previousDeployment).toMatchObject({ id: body.id, current: false, workflows })
        const recorded = 'SELECT account_id, actor_kind FROM audit_log WHERE subject_id = ?'
        const entries = await subject.service.rows(recorded, body.id)
        expect(entries).toEqual([{ account_id: account.id, actor_kind: 'caller' }])
      })

      test('deployments at the same time both succeed, and one of them is current', async () => {
        const account = await subject.service.createAccount()
        const deploy = (version: string) => subject.call(account.key, { body: reverseText(version) })
        const both = await Promise.all([deploy('1.0.0'), deploy('1.0.1')])
        const { body } = await send(subject.service, 'listDeployments', account.key)
        const current = body.data.filter((each: { current: boolean }) => each.current)
        const ids = both.map(({ body }) => body.id)
        expect(current).toMatchObject([
          { id: both.find((each) => ids.includes(each.body.previousDeployment.id))?.body.id },
        ])
      })
    },
    400(subject) {
      const { files, modules } = reverseText('1.0.0')
      test.each([
        [
          'a path that leads out',
          { files: [{ path: '../x.js', content: '' }, ...files] },
          '/files/0/path',
          'must not have the segment . or ..',
        ],
        ['two files with one path', { files: [...files, ...files] }, '/files/1/path', 'is the path of another file'],
        [
          'a content that is not base64',
          { files: [...files, { path: 'a', content: 'ä', encoding: 'base64' }] },
          '/files/1/content',
          'must be base64',
        ],
        [
          'a module without a file',
          { modules: [{ path: 'b.js' }] },
          '/modules/0/path',
          'is the path of none of the files',
        ],
      ])('refuses %s', async (_, members, pointer, detail) => {
        const { key } = await subject.service.createAccount()
        const { body } = await subject.call(key, { body: { files, modules, ...members } })
        expect(body.errors).toEqual([{ pointer, detail }])
      })

      test.each([
        ['throws', 'throw new Error("/secret/path is missing")', 'failed to load: Error: /secret/path is missing'],
        ['ends its process', 'process.exit(3)', 'ended its process while loading (exit code 3)'],
        [
          'imports a file of no module',
          'import "./data.txt"',
          'failed to load: TypeError: Unknown file extension ".txt" for data.txt. Nothing',
        ],
        [
          'cannot be read',
          'let a = 1\nlet b = = 2',
          "failed to load: SyntaxError: Unexpected token '=' in reverse-text.js:2.",
        ],
        ['is no workflow', 'export default {}', 'is not a valid workflow: its default export must be'],
      ])('refuses a module that %s, named as its source', async (_, content, reason) => {
        const { key } = await subject.service.createAccount()
        const path = 'reverse-text.js'
        const response = await subject.call(key, {
          body: {
            files: [
              { path, content },
              { path: 'data.txt', content: '' },
            ],
            modules,
          },
        })
        const expected = { kind: 'invalid-workflows', title: 'Invalid workflows', status: 400 }
        expectProblem(subject.operation, response, expected)
        expect(response.body.detail).toContain(`workflows/reverse-text.ts ${reason}`)
        expect((await send(subject.service, 'listDeployments', key)).body.data).toEqual([])
      })

      test('names the line of an option in the source', async () => {
        const { key } = await subject.service.createAccount()
        const sent = reverseText('')
        const [module] = sent.modules
        const { body } = await subject.call(key, {
          body: { ...sent, modules: [{ ...module, optionLines: { '/version': 7 } }] },
        })
        const place = 'workflows/reverse-text.ts:7 is not a valid workflow'
        expect(body.detail).toBe(
          `${place}: version must be a string of 1 to 100 characters, without U+0000. Nothing was deployed.`,
        )
      })
    },
    409(subject) {
      test('refuses a version that breaks callers, unless that is allowed', async () => {
        const account = await subject.service.createAccount()
        const deploy = (version: string, required: string[], more = {}) =>
          send(subject.service, 'createDeployment', account.key, {
            body: { ...reverseText(version, { properties: { text: {} }, required }), ...more },
          })
        await deploy('1.0.0', []).expect(201)
        const body = reverseText('1.1.0', { properties: { text: {} }, required: ['text'] })
        const refused = await subject.call(account.key, { body })
        expectProblem(subject.operation, refused, { kind: 'breaks-callers', title: 'Breaks callers', status: 409 })
        expect(refused.body.detail).toMatch(
          /^The workflow reverse-text has the version 1\.1\.0 after 1\.0\.0, but breaks/,
        )
        const allowed = await deploy('1.1.0', ['text'], { allowBreaking: true }).expect(201)
        expect(allowed.body.breakingChanges).toEqual(refused.body.detail.split('\n').slice(0, -1))
      })
    },
    429(subject) {
      test('a bundle that loads without end keeps no other account waiting', async (test) => {
        const [slow, other] = [await subject.service.createAccount(), await subject.service.createAccount()]
        const flag = join(await newDirectory(test), 'done')
        const content = `import { existsSync } from 'node:fs'
          while (!existsSync(${JSON.stringify(flag)})) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 10)
          export default {}`
        const body = { files: [{ path: 'a.js', content }], modules: [{ path: 'a.js' }] }
        const sent = [1, 2].map(() => send(subject.service, 'createDeployment', slow.key, { body }).then())
        await send(subject.service, 'createDeployment', other.key, { body: reverseText('1.0.0') }).expect(201)
        writeFileSync(flag, '')
        expect((await Promise.all(sent)).map(({ status }) => status)).toEqual([400, 400])
      })

      test('refuses a third bundle of an account at the same time', async () => {
        const { key } = await subject.service.createAccount()
        const content = 'await new Promise((resolve) => setTimeout(resolve, 300)); export default {}'
        const body = { files: [{ path: 'a.js', content }], modules: [{ path: 'a.js' }] }
        const sent = [1, 2, 3].map(() => send(subject.service, 'createDeployment', key, { body }))
        const responses = await Promise.all(sent)
        expect(responses.map(({ status }) => status).sort()).toEqual([400, 400, 429])
        const refused = responses.find(({ status }) => status === 429)
        expect(refused?.body.type).toBe('/docs/errors#too-many-concurrent-requests')
        expect(refused?.headers['retry-after']).toBe('5')
      })
    },
  },
)
