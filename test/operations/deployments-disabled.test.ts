/** Without API_DEPLOYMENTS, no API key deploys anything. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startTestService, type TestService } from '../support/service.ts'
import { expectProblem, operationOf } from './document.ts'
import { reverseText, send, storeDeployment } from './requests.ts'

let service: TestService
beforeAll(async () => {
  service = await startTestService({ worker: false, settings: { API_DEPLOYMENTS: 'off' } })
})
afterAll(() => service.stop())

test('the code of a caller is not loaded, and what is deployed can still be listed and activated', async () => {
  const account = await service.createAccount()
  const body = reverseText('1.0.0')
  const { status, headers, text } = await send(service, 'createDeployment', account.key, { body })
  expectProblem(
    operationOf('createDeployment'),
    { status, headers, text },
    {
      kind: 'deployments-disabled',
      title: 'Deployments disabled',
      status: 409,
      detail:
        'This installation accepts no deployments from API keys. Its operator allows them with API_DEPLOYMENTS=on. Nothing was deployed.',
    },
  )
  const deploymentId = await storeDeployment(service, account)
  await send(service, 'activateDeployment', account.key, { path: { deploymentId } }).expect(200)
  expect((await send(service, 'listDeployments', account.key)).body.data).toMatchObject([{ id: deploymentId }])
})
