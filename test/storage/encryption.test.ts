/** Encryption, signatures and cursors, with current and older keys. */
import { randomBytes } from 'node:crypto'
import { expect, test } from 'vitest'
import { encryptedColumns } from '../../src/domain/installation.ts'
import { Cursors } from '../../src/storage/cursors.ts'
import { deriveKey, Encryption, FixedKeys, keyBytes } from '../../src/storage/encryption.ts'

const newKey = () => randomBytes(keyBytes)
const withKeys = (...keys: Buffer[]) => new Encryption(new FixedKeys(keys))

const [key, newer] = [newKey(), newKey()]
const encryption = withKeys(key)
const rotated = withKeys(newer, key)

test.each(['', 'text', 'ünïcode 🌍 \0', 'x'.repeat(100_000)])('%.20j is decrypted unchanged', (text) => {
  expect(encryption.decrypt(encryption.encrypt(text, 'owner'), 'owner')).toBe(text)
})

test('equal texts have different ciphertexts', () => {
  const [one, two] = [encryption.encrypt('canary', 'owner'), encryption.encrypt('canary', 'owner')]
  expect(one).not.toEqual(two)
  expect(Buffer.from(one).includes('canary')).toBe(false)
})

test('a value cannot be decrypted with other associated data', () => {
  const encrypted = encryption.encrypt('text', 'runs/1')
  for (const aad of ['runs/2', 'runs/1 ', '']) expect(() => encryption.decrypt(encrypted, aad)).toThrow(changed)
})

const storedKey = Buffer.alloc(keyBytes, 7)
/** With the associated data `owner`. */
const stored = Buffer.from('AoekmbxVbRZVbnWksAqZCU96JIx4StRVnXvjGUfu+i3mEQWYeiGOjI1KMoSTvA==', 'base64')

const changed = /changed, or belongs to another row/
const encrypted = encryption.encrypt('text', 'owner')

test('a value with any bit changed cannot be decrypted', () => {
  expect(encryption.decrypt(encrypted, 'owner')).not.toBe('')
  for (let bit = 0; bit < encrypted.length * 8; bit += 1) {
    const flipped = Buffer.from(encrypted)
    flipped[bit >> 3] = (flipped[bit >> 3] ?? 0) ^ (1 << (bit & 7))
    expect(() => encryption.decrypt(flipped, 'owner'), `bit ${bit}`).toThrow()
  }
})

test('a truncated or extended value cannot be decrypted', () => {
  for (let length = 0; length < encrypted.length; length += 1) {
    expect(() => encryption.decrypt(encrypted.subarray(0, length), 'owner'), `${length} bytes`).toThrow()
  }
  expect(() => encryption.decrypt(Buffer.concat([encrypted, Buffer.of(0)]), 'owner')).toThrow()
})

test('the key ID in the header is authenticated', () => {
  const encrypted = Buffer.from(encryption.encrypt('text', 'owner'))
  // The key has the ID of the other key and the secret of the first, so that only the header differs.
  const alias = { ...deriveKey(key), id: deriveKey(newer).id }
  const aliased = new Encryption({ keys: () => [alias], reload: () => [alias], missingKeyAdvice: '' })
  deriveKey(newer).id.copy(encrypted, 1)
  expect(() => aliased.decrypt(encrypted, 'owner')).toThrow(changed)
  expect(aliased.decrypt(aliased.encrypt('text', 'owner'), 'owner')).toBe('text')
})

test('values of older keys can be decrypted, and the current key encrypts', () => {
  expect(rotated.decrypt(encryption.encrypt('text', 'owner'), 'owner')).toBe('text')
  expect(withKeys(newer, storedKey).decrypt(stored, 'owner')).toBe('a stored text')
  expect(withKeys(newer).decrypt(rotated.encrypt('text', 'owner'), 'owner')).toBe('text')
})

test('the error for a missing key names the setting to change', () => {
  const id = deriveKey(newer).id.toString('hex')
  expect(() => encryption.decrypt(rotated.encrypt('text', 'owner'), 'owner')).toThrow(
    `A value in the store is encrypted with a key that is missing (${id}): ` +
      'set ENCRYPTION_KEY to that key, or add it to ENCRYPTION_KEY_PREVIOUS.',
  )
})

test('a signature depends on the key, the purpose and the text, and on the boundary between them', () => {
  const signed = encryption.sign('purpose', 'text')
  expect(encryption.sign('purpose', 'text')).toEqual(signed)
  expect(encryption.sign('purpose', 'text2')).not.toEqual(signed)
  expect(encryption.sign('purposetext', '')).not.toEqual(signed)
  expect(encryption.sign('other', 'text')).not.toEqual(signed)
  expect(rotated.sign('purpose', 'text')).not.toEqual(signed)
})

test('signatures of older keys are accepted, and the current key signs', () => {
  expect(rotated.signatures('purpose', 'text')).toEqual([
    withKeys(newer).sign('purpose', 'text'),
    encryption.sign('purpose', 'text'),
  ])
  expect(rotated.sign('purpose', 'text')).toEqual(rotated.signatures('purpose', 'text')[0])
  const storedSignature = 'c416abb1447ed21bba3af72cbb6069e245d585f067b59d9f212b66317b13019a'
  expect(withKeys(storedKey).sign('purpose', 'text').toString('hex')).toBe(storedSignature)
})

test('a cursor is valid only for its list, also with an older key', () => {
  const cursors = new Cursors(encryption)
  for (const after of ['0198c0de-0000-7000-8000-000000000000', 'with.dots.in.it', 'a']) {
    const cursor = cursors.write('list', after)
    expect(cursors.read('list', cursor)).toBe(after)
    expect(new Cursors(rotated).read('list', cursor)).toBe(after)
    expect(cursors.read('another', cursor)).toBeUndefined()
    expect(new Cursors(withKeys(newer)).read('list', cursor)).toBeUndefined()
  }
  for (const cursor of ['', '.', 'a', 'a.', '.a', 'a.b']) expect(cursors.read('list', cursor), cursor).toBeUndefined()
})

test('the associated data of every encrypted column differs between rows', () => {
  for (const { table, aadColumns, aad } of encryptedColumns) {
    const row = aadColumns.map((column) => `a ${column}`)
    const others = row.map((value, index) => aad(...row.with(index, `another ${value}`)))
    expect(new Set([aad(...row), ...others]).size, table).toBe(1 + row.length)
  }
})
