/** A service without WORKFLOWS_DIR. */
import { expect, onTestFinished, test } from 'vitest'
import { newInstallation } from '../support/installation.ts'
import { callerOf } from './caller.ts'

test('without WORKFLOWS_DIR the service starts, has no workflows, and says what to set', async () => {
  const installation = await newInstallation({ WORKFLOWS_DIR: '', LOG_LEVEL: 'info' })
  onTestFinished(() => installation.remove())
  const service = await installation.start()
  const { client } = await callerOf(installation, service)
  expect((await client.listWorkflows()).data?.data).toEqual([])
  const sentence =
    'No workflows are served: deploy a directory, for example with `npm run cli -- workflows deploy examples/workflows`.'
  expect(service.output().split(sentence)).toHaveLength(3)
})
