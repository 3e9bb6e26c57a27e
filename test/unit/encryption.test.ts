/** What is sealed opens as it was for its owner under a key of the ring, and for nobody otherwise. */
import { randomBytes } from 'node:crypto'
import { expect, test } from 'vitest'
import { Cursors } from '../../src/storage/cursors.ts'
import { Encryption } from '../../src/storage/encryption.ts'
import { deriveKey, FixedKeys, keyBytes } from '../../src/storage/encryption-keys.ts'

const newKey = () => randomBytes(keyBytes)
const withKeys = (...keys: Buffer[]) => new Encryption(new FixedKeys(keys))

const [key, newer] = [newKey(), newKey()]
const encryption = withKeys(key)
const rotated = withKeys(newer, key)

test.each(['', 'text', 'ünïcode 🌍 \0', 'x'.repeat(100_000)])('%.20j opens as it was sealed', (text) => {
  expect(encryption.decrypt(encryption.encrypt(text, 'owner'), 'owner')).toBe(text)
})

test('the same text is sealed differently each time, and never stands in it', () => {
  const [one, two] = [encryption.encrypt('canary', 'owner'), encryption.encrypt('canary', 'owner')]
  expect(one).not.toEqual(two)
  expect(Buffer.from(one).includes('canary')).toBe(false)
})

test('bytes sealed for another owner do not open', () => {
  const sealed = encryption.encrypt('text', 'runs/1')
  for (const owner of ['runs/2', 'runs/1 ', '']) expect(() => encryption.decrypt(sealed, owner)).toThrow(changed)
})

/** Sealed by the first version, which wrote no id of a key, for `owner` under a key of 32 sevens. */
const oldKey = Buffer.alloc(keyBytes, 7)
const oldSealed = Buffer.from('ATdEwUsIb1PIieQxcB4Egd86qV++YXrVl/LAAyTBVMPr50ROkXzqoTQvqstjFSkpJj10CBDopTg=', 'base64')

const changed = /changed, or belongs to another row/
const formats = [
  ['this format', encryption.encrypt('text', 'owner'), encryption],
  ['the first format', oldSealed, withKeys(oldKey)],
] as const

test.each(formats)('bytes of %s of which any bit was changed do not open', (_, sealed, opener) => {
  expect(opener.decrypt(sealed, 'owner')).not.toBe('')
  for (let bit = 0; bit < sealed.length * 8; bit += 1) {
    const flipped = Buffer.from(sealed)
    flipped[bit >> 3] = (flipped[bit >> 3] ?? 0) ^ (1 << (bit & 7))
    expect(() => opener.decrypt(flipped, 'owner'), `bit ${bit}`).toThrow()
  }
})

test.each(formats)('bytes of %s that were cut short or prolonged do not open', (_, sealed, opener) => {
  for (let length = 0; length < sealed.length; length += 1) {
    expect(() => opener.decrypt(sealed.subarray(0, length), 'owner'), `${length} bytes`).toThrow()
  }
  expect(() => opener.decrypt(Buffer.concat([sealed, Buffer.of(0)]), 'owner')).toThrow()
})

test("the key's id and the format are authenticated: other ones in front of the same text do not open", () => {
  const sealed = Buffer.from(encryption.encrypt('text', 'owner'))
  // The same bytes with the id of the other key, which has the secret of the first: only the header differs.
  const alias = { ...deriveKey(key), id: deriveKey(newer).id }
  const aliased = new Encryption({ keys: () => [alias], reload: () => [alias], missingKeyAdvice: '' })
  deriveKey(newer).id.copy(sealed, 1)
  expect(() => aliased.decrypt(sealed, 'owner')).toThrow(changed)
  expect(aliased.decrypt(aliased.encrypt('text', 'owner'), 'owner')).toBe('text')
})

test('what an older key has sealed opens, of this format and the first; the current one seals', () => {
  expect(rotated.decrypt(encryption.encrypt('text', 'owner'), 'owner')).toBe('text')
  expect(withKeys(newer, key, oldKey).decrypt(oldSealed, 'owner')).toBe('sealed by the first version')
  expect(withKeys(newer).decrypt(rotated.encrypt('text', 'owner'), 'owner')).toBe('text')
})

test('bytes sealed under a key that is missing do not open, and the sentence says which setting mends it', () => {
  const id = deriveKey(newer).id.toString('hex')
  expect(() => encryption.decrypt(rotated.encrypt('text', 'owner'), 'owner')).toThrow(
    `A value in the store is encrypted with a key that is missing (${id}): ` +
      'set ENCRYPTION_KEY to that key, or add it to ENCRYPTION_KEY_PREVIOUS.',
  )
  expect(() => encryption.decrypt(oldSealed, 'owner')).toThrow(changed)
})

test('a signature depends on the key, the purpose and the text, and on where one ends and the other begins', () => {
  const signed = encryption.sign('purpose', 'text')
  expect(encryption.sign('purpose', 'text')).toEqual(signed)
  expect(encryption.sign('purpose', 'text2')).not.toEqual(signed)
  expect(encryption.sign('purposetext', '')).not.toEqual(signed)
  expect(encryption.sign('other', 'text')).not.toEqual(signed)
  expect(rotated.sign('purpose', 'text')).not.toEqual(signed)
})

test('signatures of older keys count, those of the first version too; the current one signs', () => {
  expect(rotated.signatures('purpose', 'text')).toEqual([
    withKeys(newer).sign('purpose', 'text'),
    encryption.sign('purpose', 'text'),
  ])
  expect(rotated.sign('purpose', 'text')).toEqual(rotated.signatures('purpose', 'text')[0])
  const byFirstVersion = 'c416abb1447ed21bba3af72cbb6069e245d585f067b59d9f212b66317b13019a'
  expect(withKeys(oldKey).sign('purpose', 'text').toString('hex')).toBe(byFirstVersion)
})

test('a cursor is read for the list it was written for, under the key it was written with, also when that is older', () => {
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
