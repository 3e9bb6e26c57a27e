/** Creates installations from backups. */
import type { TestContext } from 'vitest'
import { type Installation, newInstallation, runCommand } from './installation.ts'
import { type Environment, removeDirectory, serviceSettings, temporaryDirectory } from './service.ts'

/** Creates an empty directory that is removed with the test. */
export function emptyDirectory({ onTestFinished }: Pick<TestContext, 'onTestFinished'>): string {
  const directory = temporaryDirectory()
  onTestFinished(() => removeDirectory(directory))
  return directory
}

export async function restoreInstallation(
  test: Pick<TestContext, 'onTestFinished'>,
  file: string,
  changes: Environment = {},
): Promise<Installation> {
  const directory = emptyDirectory(test)
  const { code, stderr } = await runCommand(['restore', file], {
    ...serviceSettings({ DATA_DIR: directory }),
    ...changes,
  })
  if (code !== 0) throw new Error(stderr)
  const installation = await newInstallation({ DATA_DIR: directory, ...changes })
  test.onTestFinished(installation.remove)
  return installation
}
