/** Tests getDeploymentBundle by documented status. */
import { gunzipSync } from 'node:zlib'
import { expect, test } from 'vitest'
import { describeOperation } from './describe-operation.ts'
import { expectProblem } from './document.ts'
import { leasedRun, reverseText, send } from './requests.ts'

describeOperation(
  'getDeploymentBundle',
  { worker: false },
  {
    200(subject) {
      test('returns the definitions and files of the deployment of a run', async () => {
        const { request } = await subject.caller()
        await subject.send(request)
        const response = await fetch(`${subject.service.executionUrl}${request.path}`, {
          headers: request.headers as never,
        })
        const packed = Buffer.from(await response.arrayBuffer())
        const { workflows, files, externals } = JSON.parse(gunzipSync(packed).toString())
        expect(workflows.map(({ id }: { id: string }) => id)).toContain('greet')
        expect(files.length).toBeGreaterThan(0)
        expect(externals).toEqual([])
      })
    },
    404(subject) {
      test("does not find an account's own deployment for a worker of another account", async () => {
        const { service } = subject
        const [owner, other] = [await service.createAccount(), await service.createAccount()]
        const deployment = await send(service, 'createDeployment', owner.key, { body: reverseText('1.0.0') }).expect(
          201,
        )
        const run = { path: { workflowId: 'reverse-text' }, body: { variableData: { text: 'abc' } } }
        await leasedRun(service, owner, run)
        await leasedRun(service, other)
        const path = { deploymentId: deployment.body.id }
        const { body } = await send(service, 'getDeploymentBundle', owner.key, { path }).expect(200).buffer(true)
        expect(JSON.parse(gunzipSync(body).toString()).workflows).toMatchObject([{ id: 'reverse-text' }])
        const detail = 'No such deployment in this account.'
        expectProblem(subject.operation, await subject.call(other.key, { path }), {
          ...{ kind: 'not-found', title: 'Not found', status: 404, detail },
        })
      })
    },
  },
)
