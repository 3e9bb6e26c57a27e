/** Tests getRun by documented status. */
import { expect, test } from 'vitest'
import { describeOperation } from './describe-operation.ts'
import { createContext, queueRun } from './requests.ts'

describeOperation(
  'getRun',
  { worker: true },
  {
    200(subject) {
      test('returns a queued run with its secret masked', async () => {
        const account = await subject.service.createAccount()
        const variableData = { name: 'Ada', token: 'a secret' }
        const query = 'delaySeconds=3600&expiresInSeconds=7200&priority=-3'
        const runId = await queueRun(subject.service, account, { query, body: { variableData } })
        const { body } = await subject.call(account.key, { path: { runId } })
        const createdAt = Date.parse(body.createdAt)
        expect(body).toEqual({
          id: runId,
          workflowId: 'greet',
          workflowVersion: '1.0.0',
          deploymentId: expect.stringMatching(/^[0-9a-f]{64}$/),
          status: 'queued',
          reason: null,
          waitingFor: 'delay',
          waitingForDetail: null,
          cancelRequested: false,
          priority: -3,
          tags: [],
          concurrencyKey: null,
          apiKeyId: expect.stringMatching(/^[0-9a-f-]{36}$/),
          attempts: 0,
          attemptHistory: [],
          variableData: { name: 'Ada', token: '********' },
          output: null,
          error: null,
          progress: null,
          browserContextId: null,
          persistContext: null,
          scheduleId: null,
          scheduledFor: null,
          rerunOf: null,
          parentRunId: null,
          artifacts: [],
          createdAt: new Date(createdAt).toISOString(),
          availableAt: new Date(createdAt + 3_600_000).toISOString(),
          expiresAt: new Date(createdAt + 7_200_000).toISOString(),
          startedAt: null,
          finishedAt: null,
        })
      })

      test('returns a run whose workflow reports values that the contract does not allow', async () => {
        const account = await subject.service.createAccount()
        const runOf = async (how: string) => {
          const filled = { path: { workflowId: 'misreport' }, query: '', headers: { Prefer: 'wait=30' } }
          const runId = await queueRun(subject.service, account, { ...filled, body: { variableData: { how } } })
          return (await subject.call(account.key, { path: { runId } })).body
        }
        const error = { name: '42', message: `${'z'.repeat(8191)}…` }
        const progress = { percent: 0, message: `${'y'.repeat(8191)}…` }
        expect(await runOf('throw')).toMatchObject({ status: 'failed', reason: 'workflowFailed', error, progress })
        const invalid = { status: 'failed', reason: 'outputInvalid', output: null }
        const tooLarge = 'has 1048578 bytes as JSON; at most 1048576 are allowed. Store large results as an artifact.'
        expect(await runOf('large')).toMatchObject({ ...invalid, error: { message: `The output ${tooLarge}` } })
        const tooDeep = expect.stringContaining('The output is nested more than 64 levels deep')
        expect(await runOf('deep')).toMatchObject({ ...invalid, error: { message: tooDeep } })
        const refused = expect.stringContaining('The name of a step must be a text of 1 to 200 characters')
        expect((await runOf('half')).output).toEqual({
          'name \ufffd': '\ufffd \\ud83d',
          refused: [refused, refused, refused, `RangeError: The result of step "large" ${tooLarge}`],
        })
      })

      test('returns the output and last progress of a run', async () => {
        const account = await subject.service.createAccount()
        const runId = await queueRun(subject.service, account, { query: '', headers: { Prefer: 'wait=30' } })
        const { body } = await subject.call(account.key, { path: { runId } })
        expect(body).toMatchObject({
          status: 'succeeded',
          waitingFor: null,
          attempts: 1,
          output: { greeting: 'Hello, Ada!' },
          progress: { percent: 50, message: 'Halfway' },
        })
        expect(Date.parse(body.finishedAt)).toBeGreaterThanOrEqual(Date.parse(body.startedAt))
      })

      test('returns the error of a failed run, with secrets masked', async () => {
        const account = await subject.service.createAccount()
        const workflow = { path: { workflowId: 'betray' }, query: '', headers: { Prefer: 'wait=30' } }
        const body = { variableData: { token: 'very secret', fails: true } }
        const runId = await queueRun(subject.service, account, { ...workflow, body })
        const response = await subject.call(account.key, { path: { runId } })
        expect(response.body).toMatchObject({
          status: 'failed',
          reason: 'workflowFailed',
          attempts: 2,
          error: { name: 'Error', message: 'The secrets are ******** and undefined.' },
        })
      })

      test('returns why each attempt failed, also after one that succeeded, with secrets masked', async () => {
        const account = await subject.service.createAccount()
        const workflow = { path: { workflowId: 'betray' }, query: '', headers: { Prefer: 'wait=30' } }
        const body = { variableData: { token: 'very secret', fails: false } }
        const runId = await queueRun(subject.service, account, { ...workflow, body })
        const { body: run } = await subject.call(account.key, { path: { runId } })
        expect(run).toMatchObject({ status: 'succeeded', attempts: 2, error: null })
        const message = 'The secrets are ******** and undefined.'
        const frame = String.raw`at run \(betray\.ts:\d+:\d+\)`
        const cause = message.replaceAll('*', String.raw`\*`)
        const stack = expect.stringMatching(new RegExp(`^${frame}\nCaused by Error: ${cause}\n${frame}$`))
        const error = { name: 'Error', message, stack, step: null }
        expect(run.attemptHistory).toMatchObject([
          { number: 1, startedAt: run.startedAt, outcome: 'failed', error },
          { number: 2, finishedAt: run.finishedAt, outcome: 'succeeded', error: null },
        ])
        expect(Date.parse(run.attemptHistory[1].startedAt)).toBeGreaterThanOrEqual(
          Date.parse(run.attemptHistory[0].finishedAt),
        )
      })

      test('returns the artifacts and the browser context of a run', async () => {
        const account = await subject.service.createAccount()
        const browserContextId = await createContext(subject.service, account)
        const query = `browserContextId=${browserContextId}`
        const print = { path: { workflowId: 'print' }, body: { variableData: {} }, headers: { Prefer: 'wait=30' } }
        const runId = await queueRun(subject.service, account, { ...print, query })
        const { body } = await subject.call(account.key, { path: { runId } })
        expect(body).toMatchObject({ status: 'succeeded', browserContextId, persistContext: 'onSuccess' })
        expect(body.artifacts).toMatchObject([{ name: 'hello.txt', mediaType: 'text/plain', sizeBytes: 5 }])
      })

      test('accepts the id in upper case (RFC 9562, section 4)', async () => {
        const account = await subject.service.createAccount()
        const runId = await queueRun(subject.service, account)
        const { body } = await subject.call(account.key, { path: { runId: runId.toUpperCase() } })
        expect(body.id).toBe(runId)
      })
    },
  },
)
