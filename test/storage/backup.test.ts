/** The contents of backups, and the errors of `backup` and `restore`. */
import { createHash, randomBytes, randomInt } from 'node:crypto'
import {
  mkdirSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { expect, type TestContext, test, vi } from 'vitest'
import { type BackupOptions, backup } from '../../src/commands/backup.ts'
import { restore } from '../../src/commands/restore.ts'
import { readConfig } from '../../src/config/config.ts'
import { Accounts } from '../../src/domain/accounts/accounts.ts'
import { openBlobs, openEncryption, openStore } from '../../src/domain/installation.ts'
import { RunArtifacts } from '../../src/domain/run-api/artifacts.ts'
import { Contents, inlineBytesMax } from '../../src/storage/blobs/contents.ts'
import { Encryption, FixedKeys } from '../../src/storage/encryption.ts'
import { markMoved } from '../../src/storage/sqlite/moved-store.ts'
import { claimOne } from '../support/claims.ts'
import { newAccount, openDomain, queueRun } from '../support/domain.ts'
import { recordFileCalls } from '../support/file-calls.ts'
import { runCommand } from '../support/installation.ts'
import { emptyDirectory } from '../support/restore-installation.ts'
import { until } from '../support/service.ts'

type Settings = { DATA_DIR: string; ENCRYPTION_KEY?: string; DATABASE_URL?: string }

const newKey = () => randomBytes(32).toString('base64')

/** Initializes the store and its key, adds an account, and returns the names of all accounts. */
async function accountsIn(settings: Settings, name?: string): Promise<string[]> {
  const config = readConfig(settings)
  const store = await openStore(config)
  try {
    await openEncryption(config, store)
    const accounts = new Accounts(store)
    if (name !== undefined) await accounts.create({ name, scopesEnabled: false })
    return (await accounts.list()).map((account) => account.name)
  } finally {
    await store.close()
  }
}

/** Creates an installation with an account, and a directory for backups. */
async function openInstallation(context: TestContext, changes: Partial<Settings> = {}) {
  const print = vi.spyOn(process.stdout, 'write').mockReturnValue(true)
  context.onTestFinished(() => print.mockRestore())
  const settings: Settings = { DATA_DIR: emptyDirectory(context), ...changes }
  await accountsIn(settings, 'Backed up')
  const directory = emptyDirectory(context)
  const file = join(directory, 'backup.db')
  const printed = () => print.mock.calls.map(([text]) => text).join('')
  const backUp = (options: BackupOptions = {}, to = file) => backup(to, options, settings)
  return { settings, directory, file, backUp, printed }
}

const emptySettings = (context: TestContext): Settings => ({ DATA_DIR: emptyDirectory(context) })

/** Returns the error of restoring `file`, and checks that no files are left behind. */
async function restoreError(file: string, settings: Settings, replace = false): Promise<string> {
  const before = readdirSync(settings.DATA_DIR)
  const message = await restore(file, { replace }, settings).then(
    () => 'accepted',
    (error: Error) => error.message,
  )
  expect(readdirSync(settings.DATA_DIR)).toEqual(before)
  return message.replaceAll(file, 'FILE').replaceAll(settings.DATA_DIR, 'DATA_DIR')
}

function change(file: string, sql: string): void {
  const database = new DatabaseSync(file)
  database.exec(sql)
  database.close()
}

/** Replaces the end of a backup by one that is right, as anyone with the key can do. */
function sealAgain(file: string, { DATA_DIR, ENCRYPTION_KEY }: Settings): void {
  const all = readFileSync(file)
  const end = all.readUInt16BE(16) * all.readUInt32BE(28)
  const digest = createHash('sha256').update(all.subarray(0, end)).digest()
  const key = ENCRYPTION_KEY ?? readFileSync(join(DATA_DIR, 'encryption.key'), 'utf8')
  const signature = new Encryption(new FixedKeys([Buffer.from(key, 'base64')])).sign('backup', digest.toString('hex'))
  writeFileSync(file, Buffer.concat([all.subarray(0, end), Buffer.from('execution-backup'), digest, signature]))
}

test('a backup has the artifacts above 1 MiB that are in a directory', async (context) => {
  const { settings, directory, file, backUp } = await openInstallation(context)
  const content = Buffer.alloc(inlineBytesMax + 1, 'a')
  const { DATA_DIR: location } = settings
  const encryptionKeys = [Buffer.from(readFileSync(join(location, 'encryption.key'), 'utf8'), 'base64')]
  const blobs = await openBlobs(readConfig(settings))
  const domain = await openDomain(context, { location, encryptionKeys, ...(blobs && { blobs }) })
  const { accountId, principal } = await newAccount(domain)
  const { id } = await queueRun(domain, principal)
  const claim = await claimOne(domain)
  await domain.queue.keepArtifact(claim, { name: 'a.txt', mediaType: 'text/plain', content }, [])
  await backUp()
  expect(readdirSync(directory)).toEqual(['backup.db'])
  const restored = emptySettings(context)
  await restore(file, {}, restored)
  expect(statSync(join(restored.DATA_DIR, 'service.db')).size).toBeLessThan(inlineBytesMax)
  const store = await openStore(readConfig(restored))
  const contents = new Contents(store, await openBlobs(readConfig(restored)))
  const artifact = await new RunArtifacts(store, 30, Date.now, contents).read(accountId, id, 'a.txt')
  await store.close()
  expect(content.equals(artifact?.content ?? Buffer.of())).toBe(true)
})

/** An installation with an artifact in a blob of its directory. Returns the file of the blob, without the directory. */
async function openWithBlob(context: TestContext) {
  const installation = await openInstallation(context)
  const { DATA_DIR: location } = installation.settings
  const encryptionKeys = [Buffer.from(readFileSync(join(location, 'encryption.key'), 'utf8'), 'base64')]
  const blobs = await openBlobs(readConfig(installation.settings))
  const domain = await openDomain(context, { location, encryptionKeys, ...(blobs && { blobs }) })
  const { principal } = await newAccount(domain)
  await queueRun(domain, principal)
  const claim = await claimOne(domain)
  const keep = (name: string) => {
    const content = Buffer.alloc(inlineBytesMax + 1, name)
    return domain.queue.keepArtifact(claim, { name, mediaType: 'text/plain', content }, [])
  }
  await keep('a.txt')
  const files = () => readdirSync(join(location, 'blobs'), { recursive: true }).map(String)
  const [blob = ''] = files().filter((path) => path.length > 36)
  return { ...installation, keep, blob }
}

test('a backup leaves out a blob that was deleted meanwhile', async (context) => {
  const { settings, file, backUp, keep, blob } = await openWithBlob(context)
  await keep('b.txt')
  rmSync(join(settings.DATA_DIR, 'blobs', blob))
  await backUp()
  const { DATA_DIR } = emptySettings(context)
  await restore(file, {}, { DATA_DIR })
  const restored = readdirSync(join(DATA_DIR, 'blobs'), { recursive: true }).map(String)
  expect(restored.filter((path) => path.length > 36)).toHaveLength(1)
  expect(restored).not.toContain(blob)
})

test('a restore that was interrupted while it wrote a blob is repeated', async (context) => {
  const { file, backUp, blob } = await openWithBlob(context)
  await backUp()
  const { DATA_DIR } = emptySettings(context)
  const path = join(DATA_DIR, 'blobs', blob)
  mkdirSync(dirname(path), { recursive: true })
  writeFileSync(`${path}.partial`, 'a part')
  await restore(file, {}, { DATA_DIR })
  expect(readFileSync(path)).toHaveLength(inlineBytesMax + 1)
  expect(readdirSync(dirname(path))).toEqual([basename(path)])
})

test('a restore says that it writes no blobs into a bucket', async (context) => {
  const { file, backUp, printed } = await openWithBlob(context)
  await backUp()
  const bucket = { ARTIFACTS_URL: 's3://bucket', ARTIFACTS_ACCESS_KEY_ID: 'a', ARTIFACTS_SECRET_ACCESS_KEY: 'b' }
  await restore(file, {}, { ...emptySettings(context), ...bucket })
  expect(printed()).toContain('Its artifacts above 1 MiB were not restored, because ARTIFACTS_URL is a bucket')
})

test('a backup is a single file, readable by its owner only, that restores a data directory', async (context) => {
  const { file, directory, backUp, printed } = await openInstallation(context)
  await backUp()
  expect(statSync(file).mode & 0o777).toBe(0o600)
  expect(readdirSync(directory)).toEqual(['backup.db'])
  expect(printed()).toContain('It contains the encryption key, which decrypts everything.')
  const DATA_DIR = join(emptyDirectory(context), 'new')
  await restore(file, {}, { DATA_DIR })
  expect(readdirSync(DATA_DIR).sort()).toEqual(['encryption.key', 'service.db'])
  for (const name of readdirSync(DATA_DIR)) expect(statSync(join(DATA_DIR, name)).mode & 0o777).toBe(0o600)
  const key = readFileSync(join(DATA_DIR, 'encryption.key'), 'utf8').trim()
  expect(readFileSync(file).includes(key)).toBe(true)
  expect(readFileSync(join(DATA_DIR, 'service.db')).includes(key)).toBe(false)
  expect(await accountsIn({ DATA_DIR })).toEqual(['Backed up'])
})

test('a backup and a restored store are durable when the command ends', async (context) => {
  const { settings, file, directory, backUp } = await openInstallation(context)
  const data = realpathSync(settings.DATA_DIR)
  const calls = recordFileCalls(context)
  const written = () =>
    calls
      .splice(0)
      .map((call) => call.replace(/\.[0-9a-f]+\.partial/, '.partial').replace(/replaced-\S+?Z/, 'replaced'))
  await backUp()
  expect(written()).toEqual([`sync ${file}.partial`, `rename ${file}`, `sync ${directory}`])
  await restore(file, { replace: true }, settings)
  const [restoring, replaced] = [expect.stringMatching(/^sync .*\/restoring-\w+\//), join(data, 'replaced')]
  expect(written()).toEqual([
    restoring, // The key file.
    restoring,
    `link ${join(replaced, 'service.db')}`,
    `link ${join(replaced, 'encryption.key')}`,
    `sync ${replaced}`,
    `rename ${join(data, 'encryption.key')}`,
    `rename ${join(data, 'service.db')}`,
    `sync ${data}`,
  ])
})

test('a backup of a busy store contains every earlier commit, and does not block writers', async (context) => {
  const { settings, file } = await openInstallation(context)
  const store = await openStore(readConfig(settings))
  context.onTestFinished(() => store.close())
  const accounts = new Accounts(store)
  const durable: string[] = []
  let writing = true
  const write = async () => {
    while (writing) durable.push((await accounts.create({ name: 'Durable', scopesEnabled: false })).id)
  }
  const writers = [write(), write()]
  await until('some accounts are durable', () => durable.length > 50)
  const before = [...durable]
  const { code, stderr } = await runCommand(['backup', file], settings)
  writing = false
  await Promise.all(writers)
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  expect(durable.length).toBeGreaterThan(before.length)
  const target = emptySettings(context)
  await restore(file, {}, target)
  const database = new DatabaseSync(join(target.DATA_DIR, 'service.db'))
  const durableIds = database.prepare("SELECT id FROM accounts WHERE name = 'Durable' ORDER BY id").all()
  database.close()
  // A consistent snapshot: every account before the last one is there, too.
  expect(durableIds.map(({ id }) => id)).toEqual(durable.toSorted().slice(0, durableIds.length))
  expect(durableIds.length).toBeGreaterThanOrEqual(before.length)
})

test('a backup overwrites a file only with --overwrite', async (context) => {
  const { file, backUp } = await openInstallation(context)
  await backUp()
  const first = readFileSync(file)
  await expect(backUp()).rejects.toThrow(`${file} exists: name another file, or pass --overwrite.`)
  expect(readFileSync(file)).toEqual(first)
  await backUp({ overwrite: true })
  expect(readFileSync(file)).not.toEqual(first)
})

test('a backup without the key is restored where the key is', async (context) => {
  const { settings, file, backUp, printed } = await openInstallation(context)
  await backUp({ withoutKey: true })
  expect(printed()).toContain('secrets and browser contexts are lost without it.')
  const key = readFileSync(join(settings.DATA_DIR, 'encryption.key'), 'utf8')
  expect(readFileSync(file).includes(key.trim())).toBe(false)
  const target = emptySettings(context)
  expect(await restoreError(file, target)).toBe(
    'FILE does not contain the encryption key: put the key file at DATA_DIR/encryption.key, or set ENCRYPTION_KEY.',
  )
  const notSignedWith = (place: string) =>
    `FILE was changed, or is not signed with ${place}: use another backup, or the key that the store had.`
  expect(await restoreError(file, { ...target, ENCRYPTION_KEY: newKey() })).toBe(notSignedWith('ENCRYPTION_KEY'))
  writeFileSync(join(target.DATA_DIR, 'encryption.key'), newKey(), { mode: 0o600 })
  expect(await restoreError(file, target)).toBe(notSignedWith('DATA_DIR/encryption.key'))
  writeFileSync(join(target.DATA_DIR, 'encryption.key'), key)
  await restore(file, {}, target)
  expect(await accountsIn(target)).toEqual(['Backed up'])
})

test('a key from the environment is never part of a backup', async (context) => {
  const ENCRYPTION_KEY = newKey()
  const { file, backUp, printed } = await openInstallation(context, { ENCRYPTION_KEY })
  await backUp()
  expect(printed()).toContain('It does not contain the encryption key (ENCRYPTION_KEY).')
  expect(readFileSync(file).includes(ENCRYPTION_KEY)).toBe(false)
  expect(readFileSync(file).includes(Buffer.from(ENCRYPTION_KEY, 'base64'))).toBe(false)
  const target = { ...emptySettings(context), ENCRYPTION_KEY }
  await restore(file, {}, target)
  expect(await accountsIn(target)).toEqual(['Backed up'])
})

test('a failed backup reports the reason and leaves no file', async (context) => {
  const { settings, directory, file, backUp } = await openInstallation(context)
  await expect(backUp({}, join(directory, 'none', 'backup.db'))).rejects.toThrow(
    `${join(directory, 'none')} does not exist: create it`,
  )
  await expect(backUp({ overwrite: true }, directory)).rejects.toThrow(
    `${directory} is a directory: name a file in it.`,
  )
  const empty = emptySettings(context)
  await expect(backup(file, {}, empty)).rejects.toThrow(`There is no store in ${empty.DATA_DIR}: set DATA_DIR to`)
  writeFileSync(join(settings.DATA_DIR, 'encryption.key'), newKey())
  await expect(backUp()).rejects.toThrow("The installation's key does not decrypt the values in")
  for (const command of [backup, restore]) {
    const refused = command(file, {}, { ...settings, DATABASE_URL: 'postgres://127.0.0.1:1/none' })
    await expect(refused).rejects.toThrow(/^DATABASE_URL is set: this command is for the embedded store\. /)
  }
  expect(readdirSync(directory)).toEqual([])
})

test('a file that is not a backup, is damaged, or is of a newer version is rejected', async (context) => {
  const { settings, file, directory, backUp } = await openInstallation(context)
  const target = emptySettings(context)
  const notABackup = 'FILE is not a backup: name a file that `backup` has written.'
  writeFileSync(join(directory, 'text'), 'SQLite, but not really')
  mkdirSync(join(directory, 'directory'))
  new DatabaseSync(join(directory, 'other.db')).exec('CREATE TABLE backups (name TEXT)')
  for (const name of ['none', 'text', 'directory', 'other.db']) {
    expect(await restoreError(join(directory, name), target)).toBe(notABackup)
  }
  await backUp()
  const whole = readFileSync(file)
  for (const bytes of [whole.length - 1, whole.length - 4096, 4096, 100, 99]) {
    truncateSync(file, bytes)
    expect(await restoreError(file, target)).toMatch(
      /^FILE is damaged \(it has \d+ of \d+ bytes\): use another backup\.$/,
    )
  }
  writeFileSync(file, Buffer.concat([whole.subarray(0, 8192), Buffer.alloc(whole.length - 8192, 7)]))
  expect(await restoreError(file, target)).toMatch(/^FILE is damaged \(.+\): use another backup\.$/)
  writeFileSync(file, whole)
  const newer = new DatabaseSync(file)
  newer.exec("INSERT INTO kysely_migration VALUES ('9999-newer', '')")
  newer.close()
  sealAgain(file, settings)
  const sentence = 'FILE was written by a newer version of this service: restore it with that version.'
  expect(await restoreError(file, target)).toBe(sentence)
})

test.for([...Array(12).keys()])('a backup with 64 inverted bytes is rejected, sample %i', async (sample, context) => {
  const { file, backUp } = await openInstallation(context)
  await backUp()
  const bytes = readFileSync(file)
  // Where SQLite checks nothing: in the name of the account, or anywhere.
  const name = bytes.indexOf('Backed up')
  const at = sample === 0 ? name : randomInt(100, bytes.length - 64)
  for (let index = at; index < at + (sample === 0 ? 9 : 64); index += 1) bytes[index] = ~(bytes[index] ?? 0)
  writeFileSync(file, bytes)
  const error = await restoreError(file, emptySettings(context))
  if (sample === 0) expect(error).toBe('FILE is damaged (its content does not have its digest): use another backup.')
  expect(error).toMatch(/^FILE (is damaged|was changed)/)
})

test('a backup that was changed and signed again is rejected without the key, and so is its schema with it', async (context) => {
  const { settings, file, backUp } = await openInstallation(context)
  await backUp({ withoutKey: true })
  const whole = readFileSync(file)
  const rename = "UPDATE accounts SET name = 'Other'"
  change(file, rename)
  sealAgain(file, { ...settings, ENCRYPTION_KEY: newKey() })
  const path = 'DATA_DIR/encryption.key'
  const notSigned = `FILE was changed, or is not signed with ${path}: use another backup, or the key that the store had.`
  expect(await restoreError(file, settings, true)).toBe(notSigned)
  for (const [sql, object] of [
    ['CREATE TRIGGER t AFTER INSERT ON users BEGIN DELETE FROM audit_log; END', 'trigger t'],
    ['CREATE TRIGGER users AFTER INSERT ON users BEGIN DELETE FROM audit_log; END', 'trigger users'],
    ['CREATE VIEW v AS SELECT * FROM users', 'view v'],
    ['CREATE UNIQUE INDEX i ON users (name)', 'index i'],
    ['DROP INDEX users_by_account', 'index users_by_account'],
    ['ALTER TABLE users ADD COLUMN x TEXT', 'table users, table users'],
  ] as const) {
    writeFileSync(file, whole)
    change(file, sql)
    sealAgain(file, settings)
    const sentence = `The schema in FILE is not that of this service (${object}): it was changed. Use another backup.`
    expect(await restoreError(file, settings, true)).toBe(sentence)
  }
})

test('a store with a foreign trigger is not backed up, since its backup could not be restored', async (context) => {
  const { settings, directory, backUp } = await openInstallation(context)
  change(join(settings.DATA_DIR, 'service.db'), 'CREATE TRIGGER t AFTER INSERT ON users BEGIN SELECT 1; END')
  await expect(backUp()).rejects.toThrow('(trigger t), and `restore` would refuse the backup: undo the change.')
  expect(readdirSync(directory)).toEqual([])
})

test('a backup says whether its signature proves who wrote it', async (context) => {
  const { settings, file, backUp, printed } = await openInstallation(context)
  await backUp()
  await restore(file, {}, emptySettings(context))
  expect(printed()).toContain('The backup is signed with the key that it contains: it is intact, but')
  const before = printed().length
  await restore(file, { replace: true }, settings)
  expect(printed().slice(before)).not.toContain('signed')
})

test('a backup replaces a store that was moved to PostgreSQL, whose mark stays with the old store', async (context) => {
  const { settings, file, backUp } = await openInstallation(context)
  await backUp()
  markMoved(settings.DATA_DIR, 'host:5432/runs')
  await expect(accountsIn(settings)).rejects.toThrow(/was moved to PostgreSQL at host:5432\/runs/)
  await restore(file, { replace: true }, settings)
  expect(await accountsIn(settings)).toEqual(['Backed up'])
  const [kept = ''] = readdirSync(settings.DATA_DIR).filter((name) => name.startsWith('replaced-'))
  await expect(accountsIn({ ...settings, DATA_DIR: join(settings.DATA_DIR, kept) })).rejects.toThrow(/was moved/)
})

test('a backup that was written without any key is restored only with --unsigned', async (context) => {
  const { settings, file, backUp, printed } = await openInstallation(context)
  const key = readFileSync(join(settings.DATA_DIR, 'encryption.key'), 'utf8').trim()
  writeFileSync(join(settings.DATA_DIR, 'encryption.key'), newKey())
  await backUp({ withoutKey: true })
  expect(printed()).toContain('It is not signed, because no key of this store was found: `restore` needs --unsigned.')
  const target = { ...emptySettings(context), ENCRYPTION_KEY: key }
  expect(await restoreError(file, target)).toBe('FILE is not signed: pass --unsigned if you know who wrote it.')
  await restore(file, { unsigned: true }, target)
  expect(await accountsIn(target)).toEqual(['Backed up'])
})

test('an existing store is replaced only with --replace and while it is closed, and is kept', async (context) => {
  const { file, backUp } = await openInstallation(context)
  await backUp()
  const target = emptySettings(context)
  await accountsIn(target, 'Old')
  expect(await restoreError(file, target)).toBe(
    'DATA_DIR already contains a store: set DATA_DIR to another directory, or pass --replace, which keeps the old store in a subdirectory.',
  )
  const other = await openStore(readConfig(target))
  const inUse = 'DATA_DIR/service.db is in use: stop the service, its workers and commands, and try again.'
  expect(await restoreError(file, target, true)).toBe(inUse)
  await other.close()
  await restore(file, { replace: true }, target)
  expect(await accountsIn(target)).toEqual(['Backed up'])
  const kept = readdirSync(target.DATA_DIR).filter((name) => name.startsWith('replaced-'))
  expect(kept).toHaveLength(1)
  expect(await accountsIn({ DATA_DIR: join(target.DATA_DIR, kept[0] ?? '') })).toEqual(['Old'])
})

test('a damaged store is replaced together with its log', async (context) => {
  const { file, backUp } = await openInstallation(context)
  await backUp()
  const target = emptySettings(context)
  for (const name of ['service.db', 'service.db-wal']) writeFileSync(join(target.DATA_DIR, name), randomBytes(20_000))
  await restore(file, { replace: true }, target)
  expect(readdirSync(target.DATA_DIR)).not.toContain('service.db-wal')
  expect(await accountsIn(target)).toEqual(['Backed up'])
})
