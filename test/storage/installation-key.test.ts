/** The installation's key: made once for its owner alone, the same for every process, and never replaced. */
import { once } from 'node:events'
import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { installationKey, keyBytes } from '../../src/storage/encryption.ts'
import { startProcess } from '../support/processes.ts'
import { newPlace } from '../support/store.ts'

test('is made at the first start, in a file that its owner alone may read, and is the same from then on', async (test) => {
  const directory = join(await newPlace(test), 'data')
  const key = installationKey(directory, undefined)
  expect(key).toHaveLength(keyBytes)
  expect(installationKey(directory, undefined)).toEqual(key)
  expect(readdirSync(directory)).toEqual(['encryption.key'])
  expect(statSync(directory).mode & 0o777).toBe(0o700)
  expect(statSync(join(directory, 'encryption.key')).mode & 0o777).toBe(0o600)
  expect(installationKey(join(directory, 'another'), undefined)).not.toEqual(key)
})

test('that is configured is taken, and no file is made', async (test) => {
  const directory = await newPlace(test)
  const configured = Buffer.alloc(keyBytes, 7)
  expect(installationKey(directory, configured)).toBe(configured)
  expect(readdirSync(directory)).toEqual([])
})

test.for(['', 'bm90IGEgd2hvbGUga2V5\n'])(
  'that is not whole (%j) is refused, and left as it is',
  async (content, test) => {
    const directory = await newPlace(test)
    const path = join(directory, 'encryption.key')
    writeFileSync(path, content)
    expect(() => installationKey(directory, undefined)).toThrow(
      `${path} does not hold a key of 32 bytes: restore it from a backup.`,
    )
    expect(readFileSync(path, 'utf8')).toBe(content)
  },
)

test('is one, for all processes that start at the same time', async (test) => {
  const place = await newPlace(test)
  const directories = Array.from({ length: 100 }, (_, index) => join(place, String(index)))
  const start = () => startProcess(test, new URL('../support/key-process.ts', import.meta.url), directories)
  const processes = await Promise.all([start(), start(), start()])
  const answers = processes.map((each) => once(each, 'message'))
  for (const each of processes) each.send('go')
  const [first, ...others] = (await Promise.all(answers)).map(([keys]) => keys)
  expect(first).toHaveLength(directories.length)
  for (const keys of others) expect(keys).toEqual(first)
  expect(readdirSync(directories[0] ?? '')).toEqual(['encryption.key'])
})
