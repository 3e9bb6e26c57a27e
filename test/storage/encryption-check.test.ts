/** Whoever opens a store's encryption has the store's key, or is told in one sentence which one is to be restored. */

import { randomBytes } from 'node:crypto'
import { existsSync, renameSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { ConfigError, readConfig } from '../../src/config.ts'
import { encryptedColumns } from '../../src/domain/encrypted-columns.ts'
import { openEncryption } from '../../src/domain/installation.ts'
import type { Encryption } from '../../src/storage/encryption.ts'
import { createKeyFile, keyFilePath } from '../../src/storage/key-file.ts'
import type { Store } from '../../src/storage/store.ts'
import { newPlace, openStore } from '../support/store.ts'
import { stores } from '../support/stores.ts'

const newKey = () => randomBytes(32).toString('base64')

function open(store: Store, DATA_DIR: string, environment: Record<string, string> = {}): Promise<Encryption> {
  return openEncryption(readConfig({ DATA_DIR, ...environment }), store, encryptedColumns)
}

/** As an earlier version has left it: with a secret, and without a value that tells the right key. */
async function forgetCheck(store: Store, encryption: Encryption): Promise<void> {
  const value = encryption.encrypt('1', 'runs/r/steps/s')
  await store.write(async (tx) => {
    await tx.query.deleteFrom('encryption_check').execute()
    await tx.all("INSERT INTO accounts (id, name, scopes_enabled, created_at) VALUES ('a', '', 0, 0)", [])
    await tx.all(
      `INSERT INTO runs (id, account_id, workflow_id, workflow_version, status, priority, variables, created_at)
        VALUES ('r', 'a', 'anything', '1.0.0', 'queued', 0, '{}', 0)`,
      [],
    )
    await tx.all("INSERT INTO run_steps (run_id, name, value) VALUES ('r', 's', ?)", [value])
  })
}

const checks = (store: Store) => store.read.query.selectFrom('encryption_check').selectAll().execute()

describe.each(stores)('the encryption of a store ($name)', (kind) => {
  test('begins with one key for all processes that start at once, and stays', async (test) => {
    const [place, directory] = [await newPlace(test, kind), await newPlace(test)]
    const four = await Promise.all(Array.from({ length: 4 }, () => openStore(test, place, kind)))
    const opened = await Promise.all(four.map((store) => open(store, directory)))
    const sealed = opened[0]?.encrypt('text', 'owner') ?? new Uint8Array()
    for (const encryption of opened) expect(encryption.decrypt(sealed, 'owner')).toBe('text')
    const [store] = four as [Store]
    expect((await open(store, directory)).decrypt(sealed, 'owner')).toBe('text')
    expect(await checks(store)).toHaveLength(1)
  })

  test('is opened with no key but its own: a lost file stops the start before a new one is made', async (test) => {
    const [place, directory] = [await newPlace(test, kind), await newPlace(test)]
    const store = await openStore(test, place, kind)
    await open(store, directory)
    const path = keyFilePath(directory)
    renameSync(path, `${path}.lost`)
    const missing = `${path} is missing, and the store is encrypted with a key that it held: restore it from a backup, or set ENCRYPTION_KEY if the key was there.`
    await expect(open(store, directory)).rejects.toThrow(new ConfigError(missing))
    expect(existsSync(path)).toBe(false)
    createKeyFile(path)
    const another = `The store was encrypted with another key: restore ${path} from a backup, or set ENCRYPTION_KEY if the key was there.`
    await expect(open(store, directory)).rejects.toThrow(new ConfigError(another))
    renameSync(`${path}.lost`, path)
    await open(store, directory)
  })

  test('is opened with an ENCRYPTION_KEY of its own alone, also when that was set anew', async (test) => {
    const [place, directory] = [await newPlace(test, kind), await newPlace(test)]
    const store = await openStore(test, place, kind)
    const [key, other] = [newKey(), newKey()]
    await open(store, directory, { ENCRYPTION_KEY: key })
    expect(existsSync(keyFilePath(directory))).toBe(false)
    await expect(open(store, directory, { ENCRYPTION_KEY: other })).rejects.toThrow(
      new ConfigError(
        'The store was encrypted with another key: set ENCRYPTION_KEY to that key, or add it to ENCRYPTION_KEY_PREVIOUS.',
      ),
    )
    await open(store, directory, { ENCRYPTION_KEY: other, ENCRYPTION_KEY_PREVIOUS: `${newKey()},${key}` })
    await expect(open(store, directory)).rejects.toThrow(/is missing, and the store is encrypted/)
  })

  test('is that of one key, when processes start at once with different ones', async (test) => {
    const [place, directory] = [await newPlace(test, kind), await newPlace(test)]
    const [one, two] = [await openStore(test, place, kind), await openStore(test, place, kind)]
    const opened = await Promise.allSettled(
      [one, two].map((store) => open(store, directory, { ENCRYPTION_KEY: newKey() })),
    )
    expect(opened.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected'])
  })

  test('of an earlier version is taken over when what is sealed opens, and refused otherwise', async (test) => {
    const [place, directory] = [await newPlace(test, kind), await newPlace(test)]
    const store = await openStore(test, place, kind)
    const path = keyFilePath(directory)
    await forgetCheck(store, await open(store, directory))
    renameSync(path, `${path}.lost`)
    await expect(open(store, directory)).rejects.toThrow(/is missing, and the store is encrypted/)
    createKeyFile(path)
    await expect(open(store, directory)).rejects.toThrow(/encrypted with another key/)
    expect(await checks(store)).toEqual([])
    renameSync(`${path}.lost`, path)
    await open(store, directory)
    expect(await checks(store)).toHaveLength(1)
  })
})
