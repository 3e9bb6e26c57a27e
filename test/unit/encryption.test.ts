/** What is sealed opens as it was for its owner under its key, and for nobody otherwise. */
import { randomBytes } from 'node:crypto'
import { expect, test } from 'vitest'
import { Cursors } from '../../src/storage/cursors.ts'
import { Encryption, keyBytes } from '../../src/storage/encryption.ts'

const encryption = new Encryption(randomBytes(keyBytes))

test.each(['', 'text', 'ünïcode 🌍 \0', 'x'.repeat(100_000)])('%.20j opens as it was sealed', (text) => {
  expect(encryption.open(encryption.seal(text, 'owner'), 'owner')).toBe(text)
})

test('the same text is sealed differently each time, and never stands in it', () => {
  const [one, two] = [encryption.seal('canary', 'owner'), encryption.seal('canary', 'owner')]
  expect(one).not.toEqual(two)
  expect(Buffer.from(one).includes('canary')).toBe(false)
})

test('bytes sealed for another owner do not open', () => {
  const sealed = encryption.seal('text', 'runs/1')
  for (const owner of ['runs/2', 'runs/1 ', '']) expect(() => encryption.open(sealed, owner)).toThrow()
})

test('bytes of which any bit was changed do not open', () => {
  const sealed = encryption.seal('text', 'owner')
  for (let bit = 0; bit < sealed.length * 8; bit += 1) {
    const changed = Buffer.from(sealed)
    changed[bit >> 3] = (changed[bit >> 3] ?? 0) ^ (1 << (bit & 7))
    expect(() => encryption.open(changed, 'owner'), `bit ${bit}`).toThrow()
  }
})

test('bytes that were cut short or prolonged do not open, whatever their length', () => {
  const sealed = encryption.seal('text', 'owner')
  for (let length = 0; length < sealed.length; length += 1) {
    expect(() => encryption.open(sealed.subarray(0, length), 'owner'), `${length} bytes`).toThrow()
  }
  expect(() => encryption.open(Buffer.concat([sealed, Buffer.of(0)]), 'owner')).toThrow()
})

test('bytes sealed under another key do not open', () => {
  const other = new Encryption(randomBytes(keyBytes))
  expect(() => other.open(encryption.seal('text', 'owner'), 'owner')).toThrow()
})

test('a signature depends on the key, the purpose and the text, and on where one ends and the other begins', () => {
  const signed = encryption.sign('purpose', 'text')
  expect(encryption.sign('purpose', 'text')).toEqual(signed)
  expect(encryption.sign('purpose', 'text2')).not.toEqual(signed)
  expect(encryption.sign('purposetext', '')).not.toEqual(signed)
  expect(encryption.sign('other', 'text')).not.toEqual(signed)
  expect(new Encryption(randomBytes(keyBytes)).sign('purpose', 'text')).not.toEqual(signed)
})

test('a cursor is read for the list it was written for, under the key it was written with', () => {
  const cursors = new Cursors(encryption)
  for (const after of ['0198c0de-0000-7000-8000-000000000000', 'with.dots.in.it', 'a']) {
    const cursor = cursors.write('list', after)
    expect(cursors.read('list', cursor)).toBe(after)
    expect(cursors.read('another', cursor)).toBeUndefined()
    expect(new Cursors(new Encryption(randomBytes(keyBytes))).read('list', cursor)).toBeUndefined()
  }
  for (const cursor of ['', '.', 'a', 'a.', '.a', 'a.b']) expect(cursors.read('list', cursor), cursor).toBeUndefined()
})
