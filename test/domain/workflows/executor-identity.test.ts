/** The user that executes workflows. */
import { expect, test, vi } from 'vitest'
import { readConfig } from '../../../src/config/config.ts'
import { ConfigError } from '../../../src/config/setting-kinds.ts'
import { executorIdentity } from '../../../src/domain/workflows/executor-identity.ts'

test('without EXECUTOR_UID, workflows run as the user of the service', () => {
  expect(executorIdentity(readConfig({}))).toBe(undefined)
})

test('only root can execute workflows as another user', (test) => {
  const { getuid } = process
  test.onTestFinished(() => void Object.assign(process, { getuid }))
  Object.assign(process, { getuid: vi.fn(() => 1000) })
  expect(() => executorIdentity(readConfig({ EXECUTOR_UID: '1001' }))).toThrow(
    new ConfigError(
      'EXECUTOR_UID is set, and only root can start processes of another user: start the service as root, or unset EXECUTOR_UID.',
    ),
  )
})

test.runIf(process.getuid?.() === 0)('a user that cannot read the workflows is refused', () => {
  expect(() => executorIdentity(readConfig({ EXECUTOR_UID: '61234', WORKFLOWS_DIR: '/root' }))).toThrow(
    new ConfigError('EXECUTOR_UID is 61234, which cannot read /root: give this user access, or set another user.'),
  )
})
