/** Commands for an installation that exists do not make a new one where a setting is mistyped. */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test, vi } from 'vitest'
import { exportAccountData } from '../../src/commands/account-data.ts'
import { createSignInLink, listAccounts, listUsers, removeSecondFactor } from '../../src/commands/accounts.ts'
import { listEnvironments } from '../../src/commands/environments.ts'
import { createKey, deleteKey, listKeys } from '../../src/commands/keys.ts'
import { CommandError } from '../../src/commands/output.ts'
import { rotateEncryptionKey } from '../../src/commands/rotate-encryption-key.ts'
import { listValues } from '../../src/commands/values.ts'
import { deployWorkflows, listWorkflows, rollbackWorkflows } from '../../src/commands/workflows.ts'
import { inspectDatabase } from '../../src/storage/postgres/postgres-inspection.ts'
import { newDirectory, type Test } from '../support/domain.ts'
import { dropDatabase, makeDatabase } from '../support/postgres-databases.ts'
import { moduleText, writeModules } from '../support/worker.ts'

const commands: [string, (directory: string) => Promise<void>][] = [
  ['workflows deploy', (directory) => deployWorkflows(directory, {})],
  ['workflows list', () => listWorkflows({})],
  ['workflows rollback', () => rollbackWorkflows({})],
  ['keys list', () => listKeys({})],
  ['keys delete', () => deleteKey('id', {})],
  ['accounts list', () => listAccounts({})],
  ['accounts export', (directory) => exportAccountData(join(directory, 'export'), {})],
  ['environments list', () => listEnvironments({})],
  ['secrets list', () => listValues('secret', {})],
  ['rotate-encryption-key', () => rotateEncryptionKey()],
  ['users list', () => listUsers({})],
  ['users sign-in-link', () => createSignInLink({})],
  ['users remove-second-factor', () => removeSecondFactor({ email: 'a@example.com' })],
]

function set(test: Test, settings: Record<string, string>): void {
  for (const [name, value] of Object.entries(settings)) vi.stubEnv(name, value)
  test.onTestFinished(() => void vi.unstubAllEnvs())
}

describe.each(commands)('%s', (_, command) => {
  test('creates no store in a directory without one', async (test) => {
    const workflows = await writeModules(test, { 'a.mjs': moduleText('a') })
    const directory = join(await newDirectory(test), 'mistyped')
    set(test, { DATA_DIR: directory })
    await expect(command(workflows)).rejects.toThrow(
      new CommandError(
        `There is no store in ${directory}: set DATA_DIR as the service has it, or start the service once, which creates a store.`,
      ),
    )
    expect(existsSync(directory)).toBe(false)
  })
})

test('a command creates no store in another database', async (test) => {
  const url = await makeDatabase({ empty: true })
  test.onTestFinished(() => dropDatabase(url))
  set(test, { DATA_DIR: await newDirectory(test), DATABASE_URL: url })
  await expect(listWorkflows({})).rejects.toThrow(/^There is no store in \S+: set DATABASE_URL as the service has it/)
  const inspection = await inspectDatabase(url)
  expect(inspection.isInitialized).toBe(false)
  await inspection.close()
})

test('an API key can be created before the service has started', async (test) => {
  const directory = await newDirectory(test)
  set(test, { DATA_DIR: directory })
  const write = vi.spyOn(process.stderr, 'write').mockReturnValue(true)
  vi.spyOn(process.stdout, 'write').mockReturnValue(true)
  test.onTestFinished(() => void vi.restoreAllMocks())
  await createKey({ name: 'first' })
  expect(write).toHaveBeenCalledWith(`Created a new store in ${directory}.\n`)
})
