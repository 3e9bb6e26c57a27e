/** Tests createNotificationRule by documented status. */
import { expect, test } from 'vitest'
import { describeOperation } from './describe-operation.ts'
import { expectProblem } from './document.ts'
import { expectInvalid } from './guards.ts'
import { createNotificationRule, send } from './requests.ts'

describeOperation(
  'createNotificationRule',
  { worker: false },
  {
    201(subject) {
      test('creates a rule with a secret that only this response contains, and an address that none does', async () => {
        const { key } = await subject.service.createAccount()
        const given = { name: 'Failures', events: ['run.failed'], workflowIds: ['greet'], channel: 'webhook' }
        const created = await subject.call(key, {
          body: { ...given, url: 'https://localhost/hooks?token=canary-1f0d' },
        })
        const { secret, ...rule } = created.body
        const defaults = {
          recipients: [],
          notStartedSeconds: 900,
          failurePercent: 50,
          enabled: true,
          lastMessage: null,
        }
        expect(rule).toMatchObject({ ...given, ...defaults, host: 'localhost' })
        expect(created.headers.location).toBe(`/v1/execution/notification-rules/${rule.id}`)
        const path = { ruleId: rule.id }
        expect((await send(subject.service, 'getNotificationRule', key, { path })).body).toEqual(rule)
        const sql = 'SELECT target FROM notification_rules WHERE id = ?'
        const [row] = await subject.service.rows<{ target: Uint8Array }>(sql, rule.id)
        const shown = created.text + Buffer.from(row?.target ?? []).toString('latin1')
        expect(shown.replace(secret, '')).not.toContain(secret.slice(10, 30))
        for (const text of [shown, JSON.stringify(subject.service.log)]) expect(text).not.toContain('canary-1f0d')
      })
    },
    400(subject) {
      const [slack, email] = ['slack', 'email'].map((channel) => ({ name: 'a', events: ['run.failed'], channel }))
      const noMail = { pointer: '/channel', detail: 'must not be email: the operator has not set SMTP_URL' }
      const noUrl = { pointer: '/url', detail: 'is required for the channel slack' }
      const isPrivate = {
        pointer: '/url',
        detail: 'must have a public address, or one that WEBHOOK_PRIVATE_ADDRESSES allows',
      }
      const noRecipients = { pointer: '/recipients', detail: 'must have at least one address for the channel email' }
      const withUrl = { pointer: '/url', detail: 'must be absent for the channel email' }
      const withRecipients = { pointer: '/recipients', detail: 'must be absent or empty for the channel slack' }
      const unknown = { pointer: '/workflowIds/1', detail: 'is no workflow of this account' }
      const url = 'https://localhost/'
      test.each([
        ['without an address', slack, [noUrl]],
        ['with a private address', { ...slack, url: 'https://169.254.169.254/latest' }, [isPrivate]],
        ['with recipients of a webhook', { ...slack, url, recipients: ['a@b.example'] }, [withRecipients]],
        ['with an unknown workflow', { ...slack, url, workflowIds: ['greet', 'gret'] }, [unknown]],
        ['by email without a server', { ...email, recipients: ['a@b.example'] }, [noMail]],
        ['by email to an address of a webhook', { ...email, url }, [withUrl, noRecipients, noMail]],
      ])('refuses a rule %s', async (_, rule, errors) => {
        await expectInvalid(subject, (request) => ({ ...request, body: JSON.stringify(rule) }), errors)
      })

      test.each(['a@b.example\r\nBcc: c@d.example', 'Ada <a@b.example>', 'a@b.example,c@d.example', 'no address'])(
        'refuses the recipient %j',
        async (recipient) => {
          const body = JSON.stringify({ ...email, recipients: ['a@b.example', recipient] })
          const error = { pointer: '/recipients/1', detail: expect.stringContaining('pattern') }
          await expectInvalid(subject, (request) => ({ ...request, body }), [error])
        },
      )

      test('refuses a line break in the name', async () => {
        const body = JSON.stringify({ ...slack, url, name: 'a\r\nBcc: c@d.example' })
        const error = { pointer: '/name', detail: expect.stringContaining('pattern') }
        await expectInvalid(subject, (request) => ({ ...request, body }), [error])
      })
    },
    409(subject) {
      test('concurrent requests create 20 rules at most', async () => {
        const account = await subject.service.createAccount()
        for (let count = 0; count < 18; count++) await createNotificationRule(subject.service, account)
        const body = { name: 'a', events: ['run.failed'], channel: 'slack', url: 'https://localhost/' }
        const create = () => send(subject.service, 'createNotificationRule', account.key, { body })
        const statuses = (await Promise.all(Array.from({ length: 10 }, create))).map(({ status }) => status)
        expect(statuses.filter((status) => status === 201)).toHaveLength(2)
        expectProblem(subject.operation, await subject.call(account.key, { body }), {
          kind: 'too-many-notification-rules',
          title: 'Too many notification rules',
          status: 409,
        })
      })
    },
  },
)
