/** Processes of the service: none is left when it is killed, and none starts on a store that it does not know. */
import { describe, expect, test } from 'vitest'
import { readConfig } from '../../src/config/config.ts'
import { openStore } from '../../src/domain/installation.ts'
import { until } from '../support/service.ts'
import { clientOf, fileIn, ownInstallation, queue, refusedStart, untilStatus } from './caller.ts'

// Concurrent, because they mostly wait for processes to end.
describe.concurrent('the service', () => {
  test('leaves no process behind when only its main process is killed', async (context) => {
    const installation = await ownInstallation(context, { SHUTDOWN_SECONDS: '1' })
    const killed = await installation.start()
    const client = clientOf(killed, (await installation.createAccount()).key)
    const { run } = await queue(client, 'hold', { file: fileIn(installation).file })
    await untilStatus(client, run, 'running')
    process.kill(killed.pid, 'SIGKILL')
    await until('its worker and the processes of its runs have ended', () => !killed.anyAlive())
  })

  test('leaves no process behind when it is killed while its worker starts', async (context) => {
    const installation = await ownInstallation(context)
    const killed = await installation.start('service ready')
    process.kill(killed.pid, 'SIGKILL')
    await until('its worker has ended', () => !killed.anyAlive())
  })

  test('does not start on a store with a newer schema, with one sentence that says so', async (context) => {
    const { settings } = await ownInstallation(context)
    const store = await openStore(readConfig(settings))
    const migration = "INSERT INTO kysely_migration (name, timestamp) VALUES ('9999-newer', '2999-01-01T00:00:00.000Z')"
    await store.write((tx) => tx.all(migration, []))
    await store.close()
    expect(await refusedStart(settings)).toMatch(
      /^The store was written by a newer version of this service: start that/,
    )
  })
})
