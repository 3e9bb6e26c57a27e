/** `npm run generate` leaves exactly what it generates, and its check finds everything that is not. */
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { bringTo } from '../../src/tools/generate/folder.ts'
import { removeDirectory, temporaryDirectory } from '../support/service.ts'

const files = new Map([
  ['same.ts', 'same'],
  ['changed.ts', 'new'],
  ['bruno/new.bru', 'new'],
])

/** A folder with a file of each kind: as it should be, out of date, and one that is generated no longer. */
function folder(): string {
  const directory = temporaryDirectory()
  onTestFinished(() => removeDirectory(directory))
  mkdirSync(join(directory, 'bruno'))
  for (const [name, text] of Object.entries({ 'same.ts': 'same', 'changed.ts': 'old', 'bruno/left.bru': 'left' })) {
    writeFileSync(join(directory, name), text)
  }
  return directory
}

const listed = (directory: string) => readdirSync(directory, { recursive: true, encoding: 'utf8' }).sort()

test('the check tells what is missing, out of date and left over, and changes nothing', async () => {
  const directory = folder()
  const before = listed(directory)
  expect(await bringTo(files, directory, true)).toEqual([
    `out of date: ${directory}/changed.ts`,
    `out of date: ${directory}/bruno/new.bru`,
    `no longer generated: ${directory}/bruno/left.bru`,
  ])
  expect(listed(directory)).toEqual(before)
  expect(readFileSync(join(directory, 'changed.ts'), 'utf8')).toBe('old')
})

test('afterwards the folder has exactly what is generated, and the check finds nothing', async () => {
  const directory = folder()
  expect(await bringTo(files, directory, false)).toHaveLength(3)
  expect(listed(directory)).toEqual(['bruno', 'bruno/new.bru', 'changed.ts', 'same.ts'])
  expect(readFileSync(join(directory, 'changed.ts'), 'utf8')).toBe('new')
  expect(await bringTo(files, directory, true)).toEqual([])
})
