/** Tests setSignIn by documented status. */
import { expect, test } from 'vitest'
import { describeOperation } from './describe-operation.ts'
import { expectProblem } from './document.ts'
import { createContext, createSignIn, send } from './requests.ts'

const password = 'canary-password-91b2'
const totpSeed = 'JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP'
const invalidSeed =
  'is neither a seed in Base32 nor an otpauth: URI for TOTP with 6 to 8 digits and a period of 15 to 300 seconds'
const signIn = { workflowId: 'sign-in', variableData: { user: 'ada', password }, totpSeed }

describeOperation(
  'setSignIn',
  { worker: false },
  {
    200(subject) {
      test('stores the secrets encrypted, shows them nowhere, and keeps them when they are masked', async () => {
        const { service } = subject
        const account = await service.createAccount()
        const path = { browserContextId: await createContext(service, account) }
        const first = await subject.call(account.key, { path, body: { ...signIn, checkEverySeconds: 60 } })
        const shown = { user: 'ada', password: '********' }
        expect(first.body).toMatchObject({ variableData: shown, hasTotp: true, checkEverySeconds: 60 })
        const masked = { ...signIn, variableData: shown, totpSeed: '********' }
        const second = await subject.call(account.key, { path, body: masked })
        expect(second.body).toMatchObject({ variableData: shown, hasTotp: true, checkEverySeconds: null })
        const sql = 'SELECT variables, secrets FROM context_sign_ins WHERE account_id = ?'
        const [row] = await service.rows<{ variables: string; secrets: Uint8Array }>(sql, account.id)
        const audit = await service.rows<{ details: string }>(
          "SELECT details FROM audit_log WHERE account_id = ? AND action = 'browserContext.signInSet'",
          account.id,
        )
        expect(audit).toHaveLength(2)
        const stored = Buffer.from(row?.secrets ?? []).toString('latin1')
        for (const secret of [password, totpSeed]) {
          for (const text of [first.text, second.text, stored, JSON.stringify([row?.variables, audit, service.log])])
            expect(text).not.toContain(secret)
        }
        const without = await subject.call(account.key, { path, body: { ...masked, totpSeed: undefined } })
        expect(without.body.hasTotp).toBe(false)
      })

      test('the queued run of the sign-in has the secrets encrypted, and shows them masked', async () => {
        const { service } = subject
        const account = await service.createAccount()
        const path = { browserContextId: await createSignIn(service, account, signIn) }
        const { body } = await send(service, 'signInNow', account.key, { path })
        const run = await send(service, 'getRun', account.key, { path: { runId: body.runId } })
        expect(run.body).toMatchObject({ workflowId: 'sign-in', browserContextId: path.browserContextId })
        expect(run.body.variableData).toEqual({ user: 'ada', password: '********' })
        expect(run.text + body.text).not.toContain(totpSeed)
      })
    },
    400(subject) {
      test.each([
        [
          'a workflow that does not exist',
          { workflowId: 'missing' },
          '/workflowId',
          'names no workflow of this account',
        ],
        [
          'a workflow that does not sign in',
          { workflowId: 'print', variableData: {} },
          '/workflowId',
          'names a workflow whose definition does not say signsIn: true',
        ],
        ['no password', { variableData: { user: 'ada' } }, '/variableData/password', 'is required'],
        ['a seed that is none', { totpSeed: 'otpauth://totp/x' }, '/totpSeed', invalidSeed],
        ...['digits=5', 'digits=9', 'period=14', 'period=301'].map((option) => [
          `a seed with ${option}`,
          { totpSeed: `otpauth://totp/shop?secret=${totpSeed}&${option}` },
          '/totpSeed',
          invalidSeed,
        ]),
        ['the mask of no seed', { totpSeed: '********' }, '/totpSeed', 'masks a seed, and none is stored'],
      ] as [string, object, string, string][])(
        'refuses %s, without repeating secrets',
        async (_, change, pointer, detail) => {
          const account = await subject.service.createAccount()
          const path = { browserContextId: await createContext(subject.service, account) }
          const response = await subject.call(account.key, { path, body: { ...signIn, ...change } })
          const invalid = { kind: 'invalid-request', title: 'Invalid request', status: 400 }
          expectProblem(subject.operation, response, { ...invalid, errors: [{ pointer, detail }] })
          expect(response.text).not.toContain(password)
        },
      )
    },
  },
)
