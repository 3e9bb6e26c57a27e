/** The files of deployments are private to the worker and its executors, and removed with the worker. */
import { existsSync, mkdirSync, mkdtempSync, readFileSync, statSync, utimesSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { expect, test } from 'vitest'
import { DeploymentFiles, DeploymentUnavailable } from '../../../src/domain/deployments/deployment-files.ts'
import { directoryPrefixes } from '../../../src/storage/temporary-directory.ts'

const content = {
  files: [
    { path: 'a.js', content: 'export default 1' },
    { path: 'chunks/b.js', content: 'export default 2' },
  ],
  externals: [],
}
const modeOf = (path: string) => statSync(path).mode & 0o777

test('they are written for their user alone, and removed with the worker', async () => {
  const files = new DeploymentFiles(undefined)
  const directory = await files.write('deployment', content, [])
  expect(readFileSync(join(directory, 'chunks/b.js'), 'utf8')).toBe('export default 2')
  for (const path of [dirname(directory), directory, join(directory, 'chunks')]) expect(modeOf(path)).toBe(0o700)
  expect(modeOf(join(directory, 'a.js'))).toBe(0o600)
  const again = await files.write('deployment', content, [])
  await files.remove(directory)
  expect([existsSync(directory), existsSync(again)]).toEqual([false, true])
  await files.close()
  expect(existsSync(dirname(directory))).toBe(false)
})

test.runIf(process.getuid?.() === 0)(
  'the user of executors can read them, and cannot list the deployments',
  async () => {
    const files = new DeploymentFiles({ uid: 65534, gid: 65534 })
    const directory = await files.write('deployment', content, [])
    const access = [dirname(directory), directory, join(directory, 'a.js')].map((path) => [
      modeOf(path).toString(8),
      statSync(path).uid,
      statSync(path).gid,
    ])
    expect(access).toEqual([
      ['710', 0, 65534],
      ['750', 0, 65534],
      ['640', 0, 65534],
    ])
    await files.close()
  },
)

test.for(['../x', 'a/b', '@a/b/c', '/etc', '.', '..', '@a/..', 'a\0b', ''])(
  'a package named %j is not linked',
  async (name) => {
    const files = new DeploymentFiles(undefined)
    const written = files.write('deployment', { ...content, externals: [name] }, ['/'])
    await expect(written).rejects.toThrow(new DeploymentUnavailable('One of its packages has an invalid name.'))
    await files.close()
  },
)

test.for(['deployments', 'build'] as const)(
  '%s that a killed process has left are removed by a later one',
  async (use) => {
    const left = mkdtempSync(join(tmpdir(), `${directoryPrefixes[use]}test-`))
    mkdirSync(join(left, 'deployment-1'))
    utimesSync(left, new Date(0), new Date(0))
    const files = new DeploymentFiles(undefined, use)
    const directory = await files.write('deployment', content, [])
    expect([existsSync(left), existsSync(directory)]).toEqual([false, true])
    // The directory of a process that lives is locked.
    utimesSync(dirname(directory), new Date(0), new Date(0))
    const other = new DeploymentFiles(undefined, use)
    await other.write('deployment', content, [])
    expect(existsSync(directory)).toBe(true)
    await Promise.all([files.close(), other.close()])
  },
)

test('a path that leads out of the deployment, and a directory that cannot be written, make it unavailable', async () => {
  const files = new DeploymentFiles(undefined)
  const outside = { ...content, files: [{ path: '../outside.js', content: '' }] }
  await expect(files.write('deployment', outside, [])).rejects.toThrow(DeploymentUnavailable)
  const directory = await files.write('deployment', content, [])
  const conflicting = { ...content, files: [...content.files, { path: 'a.js/b.js', content: '' }] }
  const refused = files.write('deployment', conflicting, [])
  await expect(refused).rejects.toThrow(/^The worker cannot write its files: E[A-Z]+: [^/]+\.$/)
  expect(existsSync(directory)).toBe(true)
  await files.close()
})
