/** The key file is created once with private permissions, is shared by all processes, and is re-read when it changes. */
import { spawnSync } from 'node:child_process'
import { once } from 'node:events'
import {
  appendFileSync,
  chmodSync,
  chownSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test, vi } from 'vitest'
import { Encryption, keyRefreshMilliseconds } from '../../src/storage/encryption.ts'
import { addKey, createKeyFile, KeyFile, keyFilePath } from '../../src/storage/key-file.ts'
import { newDirectory, type Test } from '../support/domain.ts'
import { recordFileCalls } from '../support/file-calls.ts'
import { startProcess, startStoreProcess } from '../support/processes.ts'
import { sqlite } from '../support/store-kinds.ts'

/** Creates a key file with one key in a new directory. */
async function newKeyFile(test: Test): Promise<string> {
  const path = keyFilePath(join(await newDirectory(test), 'data'))
  createKeyFile(path)
  return path
}

const bytesIn = (path: string) => new KeyFile(path).keys().map(({ bytes }) => bytes.toString('base64'))
const linesOf = (path: string) => readFileSync(path, 'utf8').trimEnd().split('\n')
const modeOf = (path: string) => statSync(path).mode & 0o777

test('a key file is created once, readable by its owner only', async (test) => {
  const path = await newKeyFile(test)
  const directory = join(path, '..')
  const keys = bytesIn(path)
  expect(keys.map((key) => Buffer.from(key, 'base64').length)).toEqual([32])
  createKeyFile(path)
  expect(bytesIn(path)).toEqual(keys)
  expect(readdirSync(directory)).toEqual(['encryption.key'])
  expect([modeOf(directory), modeOf(path)]).toEqual([0o700, 0o600])
  expect(bytesIn(await newKeyFile(test))).not.toEqual(keys)
})

test.for(['', 'bm90IGEgd2hvbGUga2V5\n', '\n\n'])(
  'a truncated key file (%j) is rejected and not overwritten',
  async (content, test) => {
    const path = keyFilePath(await newDirectory(test))
    writeFileSync(path, content, { mode: 0o600 })
    createKeyFile(path)
    expect(() => new KeyFile(path)).toThrow(`${path} does not contain a key of 32 bytes: restore it from a backup.`)
    expect(readFileSync(path, 'utf8')).toBe(content)
  },
)

test('a key file with an invalid line is rejected', async (test) => {
  const path = await newKeyFile(test)
  appendFileSync(path, 'bm90IGEgd2hvbGUga2V5\n')
  expect(() => new KeyFile(path)).toThrow(
    `${path} does not contain 32-byte keys, one per line: restore it from a backup.`,
  )
})

test.for(['640', '604', '660'])('a key file that other users can read (mode %s) is rejected', async (mode, test) => {
  const path = await newKeyFile(test)
  chmodSync(path, Number.parseInt(mode, 8))
  expect(() => new KeyFile(path)).toThrow(`Other users can read ${path}: run \`chmod 600 ${path}\`.`)
  chmodSync(path, 0o400)
  expect(bytesIn(path)).toHaveLength(1)
})

test('processes that start together create one key file', async (test) => {
  const directory = await newDirectory(test)
  const directories = Array.from({ length: 100 }, (_, index) => join(directory, String(index)))
  const start = () => startProcess(test, new URL('../support/key-process.ts', import.meta.url), directories)
  const processes = await Promise.all([start(), start(), start()])
  const messages = processes.map((each) => once(each, 'message'))
  for (const each of processes) each.send('go')
  const [first, ...others] = (await Promise.all(messages)).map(([keys]) => keys)
  expect(first).toHaveLength(directories.length)
  for (const keys of others) expect(keys).toEqual(first)
  expect(readdirSync(directories[0] ?? '')).toEqual(['encryption.key'])
})

test('adding a key puts it first, keeps the older ones, and leaves no temporary file', async (test) => {
  const path = await newKeyFile(test)
  const [first] = linesOf(path)
  writeFileSync(`${path}.new`, 'half a fi')
  addKey(path)
  addKey(path)
  const lines = linesOf(path)
  expect([lines.length, lines.at(-1), new Set(lines).size]).toEqual([3, first, 3])
  expect(readdirSync(join(path, '..'))).toEqual(['encryption.key'])
  expect(modeOf(path)).toBe(0o600)
})

test('a key is durable before any process can encrypt with it', async (test) => {
  const parent = realpathSync(await newDirectory(test))
  const directory = join(parent, 'data')
  const path = keyFilePath(directory)
  const calls = recordFileCalls(test)
  createKeyFile(path)
  const draft = expect.stringMatching(/^sync .*\/data\/encryption\.key\.[0-9a-f]+$/)
  expect(calls.splice(0)).toEqual([`sync ${parent}`, draft, `link ${path}`, `sync ${directory}`])
  addKey(path)
  const replaced = [`sync ${path}.new`, `rename ${path}`, `sync ${directory}`]
  expect(calls.splice(0)).toEqual([...replaced, ...replaced])
  // The process that created the file may not have synced the directory yet.
  createKeyFile(path)
  expect(calls).toEqual([`sync ${directory}`])
})

describe.skipIf(process.getuid?.() !== 0)('a key file of another user', () => {
  const otherUser = 65_534

  test('keeps its owner when root adds a key', async (test) => {
    const path = await newKeyFile(test)
    chownSync(path, otherUser, otherUser)
    addKey(path)
    const { uid, gid } = statSync(path)
    expect([uid, gid, modeOf(path), linesOf(path).length]).toEqual([otherUser, otherUser, 0o600, 2])
  })

  test('stays unchanged when the process cannot restore its owner', async (test) => {
    const path = await newKeyFile(test)
    const directory = join(path, '..')
    const before = readFileSync(path, 'utf8')
    chmodSync(join(directory, '..'), 0o755)
    chmodSync(directory, 0o777)
    chmodSync(path, 0o644)
    const module = new URL('../../src/storage/key-file.ts', import.meta.url)
    const program = `import { addKey } from '${module}'; try { addKey('${path}') } catch (error) { console.log(error.message) }`
    const otherUserOptions = { uid: otherUser, gid: otherUser, cwd: '/', encoding: 'utf8' } as const
    const { stdout, stderr } = spawnSync(process.execPath, ['--input-type=module', '-e', program], otherUserOptions)
    expect(stderr).toBe('')
    expect(stdout.trim()).toBe(
      `${path} belongs to another user (0): run this command as that user or as root. Nothing was changed.`,
    )
    expect(readFileSync(path, 'utf8')).toBe(before)
    expect(readdirSync(directory)).toEqual(['encryption.key'])
  })
})

test('keys that processes add concurrently are all kept', async (test) => {
  const directory = await newDirectory(test)
  const path = keyFilePath(directory)
  createKeyFile(path)
  const start = () => startStoreProcess(test, { kind: sqlite, command: 'addKeys', locations: [directory] })
  const processes = await Promise.all([start(), start(), start()])
  const exits = processes.map((each) => once(each, 'exit'))
  for (const each of processes) each.send('go')
  expect(await Promise.all(exits)).toEqual(processes.map(() => [0, null]))
  expect(linesOf(path)).toHaveLength(31)
})

test('decrypting and verifying use a new key at once', async (test) => {
  const path = await newKeyFile(test)
  const [running, other] = [new Encryption(new KeyFile(path)), new Encryption(new KeyFile(path))]
  const before = running.encrypt('before', 'owner')
  addKey(path)
  const after = new Encryption(new KeyFile(path))
  expect(running.decrypt(after.encrypt('after', 'owner'), 'owner')).toBe('after')
  expect(other.signatures('purpose', 'text')[0]).toEqual(after.sign('purpose', 'text'))
  expect(running.decrypt(before, 'owner')).toBe('before')
})

test('encrypting uses a new key within a second', async (test) => {
  const path = await newKeyFile(test)
  const running = new Encryption(new KeyFile(path))
  const header = Buffer.from(running.encrypt('', '')).subarray(0, 5)
  addKey(path)
  const waiting = { timeout: keyRefreshMilliseconds + 500, interval: 20 }
  await vi.waitFor(() => expect(Buffer.from(running.encrypt('', '')).subarray(0, 5)).not.toEqual(header), waiting)
})

test('a running process keeps its keys when the file is lost or damaged', async (test) => {
  const path = await newKeyFile(test)
  const keyFile = new KeyFile(path)
  const keys = keyFile.keys()
  writeFileSync(path, 'half a li')
  expect(keyFile.reload()).toEqual(keys)
  rmSync(path)
  expect(keyFile.reload()).toEqual(keys)
  expect(() => new Encryption(keyFile).decrypt(new Encryption(keyFile).encrypt('text', 'owner'), 'other')).toThrow()
})
