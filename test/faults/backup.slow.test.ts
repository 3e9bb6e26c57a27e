/** `backup` and `restore` of a service under load. */
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { createBrowserContextClient, unwrap } from '../../src/client/index.ts'
import { callerOf, clientOf, ownInstallation, queue, read } from '../e2e/caller.ts'
import { emptyDirectory, restoreInstallation } from '../support/restore-installation.ts'
import { until } from '../support/service.ts'

const state = { cookies: [], origins: [{ origin: 'https://shop.example', localStorage: [{ name: 'a', value: 'b' }] }] }

test('a backup under load contains every run that was acknowledged before it began, with its secrets', async (context) => {
  const installation = await ownInstallation(context)
  const service = await installation.start()
  const { account, client } = await callerOf(installation, service)
  const contexts = createBrowserContextClient({ apiKey: account.key, baseUrl: service.browserContextUrl })
  const { id: browserContextId } = unwrap(await contexts.createBrowserContext({}))
  await contexts.putStorageState({ params: { path: { browserContextId } }, body: state })
  const acknowledged: string[] = []
  let calling = true
  const call = async () => {
    while (calling) {
      const secret = { name: 'Ada', token: `a secret of ${acknowledged.length}` }
      acknowledged.push((await queue(client, 'greet', secret)).run.id)
    }
  }
  const callers = [call(), call(), call(), call()]
  await until('runs are queued', () => acknowledged.length > 300)
  const before = [...acknowledged]
  const file = join(emptyDirectory(context), 'backup.db')
  expect(await installation.runCommand('backup', file)).toMatchObject({ code: 0, stderr: '' })
  const inUse = await installation.runCommand('restore', file, '--replace')
  expect([inUse.code, inUse.stderr]).toEqual([1, expect.stringContaining('service.db is in use: stop the service')])
  const during = acknowledged.length - before.length
  calling = false
  await Promise.all(callers)
  expect(during).toBeGreaterThan(10)
  await service.stop()

  const again = await restoreInstallation(context, file)
  const second = await again.start()
  const late = clientOf(second, account.key)
  for (const id of before) expect(await read(late, { id })).toMatchObject({ id })
  const others = createBrowserContextClient({ apiKey: account.key, baseUrl: second.browserContextUrl })
  expect(unwrap(await others.getStorageState({ params: { path: { browserContextId } } }))).toEqual(state)
  // Unfinished runs execute now, with their secrets.
  for (const id of before) {
    await until(`run ${id} has finished`, async () => (await read(late, { id })).status === 'succeeded')
  }
})
