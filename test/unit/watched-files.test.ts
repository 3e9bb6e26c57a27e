/** Which files count as changed for those who load them: `npm run dev` loads the code of a new version. */
import { mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import { expect, type TestContext, test } from 'vitest'
import { WatchedFiles } from '../../src/tools/dev/watched-files.ts'

/** A folder with two files that is watched, and what changes it. */
function watching({ onTestFinished }: TestContext) {
  const folder = mkdtempSync(join(tmpdir(), 'watched-'))
  const write = (name: string, text: string) => writeFileSync(join(folder, name), text)
  write('one', 'a')
  write('other', 'a')
  const watched = new WatchedFiles([folder])
  onTestFinished(() => {
    watched.close()
    rmSync(folder, { recursive: true })
  })
  const changed = async () => (await watched.changed()).files.map((file) => relative(folder, file))
  return { folder, watched, write, changed }
}

test('a file that was saved and undone counts only when it was loaded meanwhile', async (context) => {
  const { watched, write, changed } = watching(context)
  write('one', 'b')
  write('one', 'a')
  write('other', 'b')
  expect(await changed()).toEqual(['other'])
  write('one', 'b')
  write('one', 'a')
  watched.loaded()
  expect(await changed()).toEqual(['one'])
  watched.loaded()
  write('one', 'a')
  write('other', 'c')
  expect(await changed()).toEqual(['other'])
})

test('files that came, went, or were replaced by their like while they were loaded count', async (context) => {
  const { folder, watched, write, changed } = watching(context)
  mkdirSync(join(folder, 'new'))
  write('new/one', 'a')
  write('aside', 'a')
  renameSync(join(folder, 'aside'), join(folder, 'one'))
  rmSync(join(folder, 'other'))
  watched.loaded()
  rmSync(join(folder, 'new'), { recursive: true })
  expect(await changed()).toEqual(['new/one', 'one', 'other'])
})
