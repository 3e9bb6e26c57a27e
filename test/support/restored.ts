/** An installation whose store `restore` has made of a backup. */
import type { TestContext } from 'vitest'
import { command, type Installation, newInstallation } from './installation.ts'
import { type Environment, removeDirectory, settingsOf, temporaryDirectory } from './service.ts'

/** A data directory with nothing in it. */
export function emptyDirectory({ onTestFinished }: Pick<TestContext, 'onTestFinished'>): string {
  const directory = temporaryDirectory()
  onTestFinished(() => removeDirectory(directory))
  return directory
}

export async function restored(
  test: Pick<TestContext, 'onTestFinished'>,
  file: string,
  changes: Environment = {},
): Promise<Installation> {
  const directory = emptyDirectory(test)
  const { code, stderr } = await command(['restore', file], { ...settingsOf({ DATA_DIR: directory }), ...changes })
  if (code !== 0) throw new Error(stderr)
  const installation = await newInstallation({ DATA_DIR: directory, ...changes })
  test.onTestFinished(installation.remove)
  return installation
}
