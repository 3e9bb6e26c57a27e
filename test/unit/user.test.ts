/** What a user may be called, and what is accepted as an e-mail address and as a password. */
import { describe, expect, test } from 'vitest'
import { hashPassword, passwordError, verifyPassword } from '../../src/domain/accounts/password.ts'
import { parseEmail, parseName } from '../../src/domain/accounts/user.ts'

describe('a name', () => {
  test('is trimmed, has 1 to 100 characters, and may be written in any script', () => {
    expect(parseName('  Ada Lovelace\n')).toBe('Ada Lovelace')
    for (const name of ['明', '🧮', '<script>alert(1)</script>', '"\'&${1}', 'a'.repeat(100), '👩‍💻'.repeat(30)]) {
      expect(parseName(name)).toBe(name)
    }
  })

  test('is refused with a sentence for its input', () => {
    for (const name of [
      '',
      ' \t ',
      'a'.repeat(101),
      'a\0b',
      'a\nb',
      'a\u007fb',
      'a\u0085b',
      '\u200b',
      '\u202eevil',
      '\ud800',
    ]) {
      expect(() => parseName(name)).toThrow(expect.objectContaining({ member: 'name' }))
    }
  })
})

describe('an e-mail address', () => {
  test('is trimmed, in lower case, and of any shape that a browser takes', () => {
    expect(parseEmail(' Ada@Example.COM ')).toBe('ada@example.com')
    for (const email of ['a@b', 'ada+tag@example.com', 'ädä@exämple.com', `${'a'.repeat(250)}@b.c`]) {
      expect(parseEmail(email)).toBe(email)
    }
  })

  test('is refused with a sentence for its input', () => {
    const none = [
      '',
      ' ',
      'ada',
      '@example.com',
      'ada@',
      'a b@example.com',
      'a@b@c',
      '<a@b>',
      'a(b)@c',
      'a\0b@c',
      'a@\u007f',
    ]
    for (const email of [...none, `${'a'.repeat(251)}@b.c`]) {
      expect(() => parseEmail(email)).toThrow(expect.objectContaining({ member: 'email' }))
    }
  })
})

describe('a password', () => {
  test('has 12 to 200 characters, at least 5 of them different', () => {
    for (const good of ['twelve chars', 'correct horse battery', 'abcde'.repeat(40), '            abcd']) {
      expect(passwordError(good)).toBeUndefined()
    }
    expect(passwordError('eleven char')).toBe('Use at least 12 characters.')
    expect(passwordError('')).toBe('Use at least 12 characters.')
    expect(passwordError('abcde'.repeat(41))).toBe('Use at most 200 characters.')
    expect(passwordError('abababababab')).toBe('Use more different characters.')
  })

  test('is kept as a salted Argon2id hash, which alone tells whether it is the one', async () => {
    const hashes = [await hashPassword('correct horse battery'), await hashPassword('correct horse battery')]
    expect(hashes[0]).not.toBe(hashes[1])
    for (const hash of hashes) {
      expect(hash).toMatch(/^\$argon2id\$v=19\$m=19456,t=2,p=1\$/)
      expect(await verifyPassword('correct horse battery', hash)).toBe(true)
      expect(await verifyPassword('correct horse battery ', hash)).toBe(false)
    }
    expect(await verifyPassword('correct horse battery', null)).toBe(false)
  })
})
