/** Opening a store's encryption requires the store's key; otherwise the error says which key to restore. */
import { randomBytes } from 'node:crypto'
import { existsSync, renameSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { readConfig } from '../../src/config/config.ts'
import { ConfigError } from '../../src/config/setting-kinds.ts'
import { openEncryption } from '../../src/domain/installation.ts'
import type { Encryption } from '../../src/storage/encryption.ts'
import { createKeyFile, keyFilePath } from '../../src/storage/key-file.ts'
import type { Store } from '../../src/storage/store.ts'
import { newDirectory, newStoreLocation, openStore } from '../support/domain.ts'
import { stores } from '../support/store-kinds.ts'

const newKey = () => randomBytes(32).toString('base64')

function open(store: Store, DATA_DIR: string, environment: Record<string, string> = {}): Promise<Encryption> {
  return openEncryption(readConfig({ DATA_DIR, ...environment }), store)
}

/** Leaves the store with an encrypted value, but without the check value. */
async function removeCheckValue(store: Store, encryption: Encryption): Promise<void> {
  const value = encryption.encrypt('1', 'runs/r/steps/s')
  await store.write(async (tx) => {
    await tx.query.deleteFrom('encryption_check').execute()
    await tx.all("INSERT INTO accounts (id, name, scopes_enabled, created_at) VALUES ('a', '', 0, 0)", [])
    await tx.all(
      `INSERT INTO runs (id, account_id, workflow_id, workflow_version, status, priority, variables, created_at)
        VALUES ('r', 'a', 'anything', '1.0.0', 'queued', 0, '{}', 0)`,
      [],
    )
    await tx.all("INSERT INTO run_steps (run_id, name, position, value) VALUES ('r', 's', 1, ?)", [value])
  })
}

const checks = (store: Store) => store.read.query.selectFrom('encryption_check').selectAll().execute()

describe.each(stores)('the encryption of a store ($name)', (kind) => {
  test('uses one key for all processes that start together, and for later ones', async (test) => {
    const [location, directory] = [await newStoreLocation(test, kind), await newDirectory(test)]
    const four = await Promise.all(Array.from({ length: 4 }, () => openStore(test, location, kind)))
    const opened = await Promise.all(four.map((store) => open(store, directory)))
    const encrypted = opened[0]?.encrypt('text', 'aad') ?? new Uint8Array()
    for (const encryption of opened) expect(encryption.decrypt(encrypted, 'aad')).toBe('text')
    const [store] = four as [Store]
    expect((await open(store, directory)).decrypt(encrypted, 'aad')).toBe('text')
    expect(await checks(store)).toHaveLength(1)
  })

  test('requires the original key file: a lost one fails the start instead of being replaced', async (test) => {
    const [location, directory] = [await newStoreLocation(test, kind), await newDirectory(test)]
    const store = await openStore(test, location, kind)
    await open(store, directory)
    const path = keyFilePath(directory)
    renameSync(path, `${path}.lost`)
    const missing = `The encryption key ${path} is missing: restore it from a backup, or set ENCRYPTION_KEY if the key was configured there.`
    await expect(open(store, directory)).rejects.toThrow(new ConfigError(missing))
    expect(existsSync(path)).toBe(false)
    createKeyFile(path)
    const another = `The store was encrypted with another key: restore ${path} from a backup, or set ENCRYPTION_KEY if the key was there.`
    await expect(open(store, directory)).rejects.toThrow(new ConfigError(another))
    renameSync(`${path}.lost`, path)
    await open(store, directory)
  })

  test('requires the original ENCRYPTION_KEY as the current or a previous key', async (test) => {
    const [location, directory] = [await newStoreLocation(test, kind), await newDirectory(test)]
    const store = await openStore(test, location, kind)
    const [key, other] = [newKey(), newKey()]
    await open(store, directory, { ENCRYPTION_KEY: key })
    expect(existsSync(keyFilePath(directory))).toBe(false)
    await expect(open(store, directory, { ENCRYPTION_KEY: other })).rejects.toThrow(
      new ConfigError(
        'The store was encrypted with another key: set ENCRYPTION_KEY to that key, or add it to ENCRYPTION_KEY_PREVIOUS.',
      ),
    )
    await open(store, directory, { ENCRYPTION_KEY: other, ENCRYPTION_KEY_PREVIOUS: `${newKey()},${key}` })
    await expect(open(store, directory)).rejects.toThrow(/is missing: restore it/)
  })

  test('accepts one key when processes start together with different ones', async (test) => {
    const [location, directory] = [await newStoreLocation(test, kind), await newDirectory(test)]
    const [one, two] = [await openStore(test, location, kind), await openStore(test, location, kind)]
    const opened = await Promise.allSettled(
      [one, two].map((store) => open(store, directory, { ENCRYPTION_KEY: newKey() })),
    )
    expect(opened.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected'])
  })

  test('that has lost its check value is adopted by the key that decrypts its values, and by no other', async (test) => {
    const [location, directory] = [await newStoreLocation(test, kind), await newDirectory(test)]
    const store = await openStore(test, location, kind)
    const path = keyFilePath(directory)
    await removeCheckValue(store, await open(store, directory))
    renameSync(path, `${path}.lost`)
    await expect(open(store, directory)).rejects.toThrow(/is missing: restore it/)
    createKeyFile(path)
    await expect(open(store, directory)).rejects.toThrow(/encrypted with another key/)
    expect(await checks(store)).toEqual([])
    renameSync(`${path}.lost`, path)
    await open(store, directory)
    expect(await checks(store)).toHaveLength(1)
  })
})
