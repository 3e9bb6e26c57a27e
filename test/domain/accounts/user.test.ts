/** The rules for names, e-mail addresses and passwords of users. */
import { describe, expect, test } from 'vitest'
import { hashPassword, requireGoodPassword, verifyPassword } from '../../../src/domain/accounts/passwords.ts'
import { parseEmail, parseName } from '../../../src/domain/accounts/user.ts'

const invalidNames = [
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
]

describe('names', () => {
  test('are trimmed, have 1 to 100 characters, and may use any script', () => {
    expect(parseName('  Ada Lovelace\n')).toBe('Ada Lovelace')
    for (const name of ['明', '🧮', '<script>alert(1)</script>', '"\'&${1}', 'a'.repeat(100), '👩‍💻'.repeat(30)]) {
      expect(parseName(name)).toBe(name)
    }
  })

  test.each(invalidNames)('%j is rejected', (name) => {
    expect(() => parseName(name)).toThrow(expect.objectContaining({ member: 'name' }))
  })
})

describe('e-mail addresses', () => {
  test('are trimmed, lower-cased, and as lenient as in browsers', () => {
    expect(parseEmail(' Ada@Example.COM ')).toBe('ada@example.com')
    for (const email of ['a@b', 'ada+tag@example.com', 'ädä@exämple.com', `${'a'.repeat(250)}@b.c`]) {
      expect(parseEmail(email)).toBe(email)
    }
  })

  const shapes = [
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
  test.each([...shapes, `${'a'.repeat(251)}@b.c`])('%j is rejected', (email) => {
    expect(() => parseEmail(email)).toThrow(expect.objectContaining({ member: 'email' }))
  })
})

describe('passwords', () => {
  test('have 12 to 200 characters, at least 5 of them different', () => {
    for (const good of ['twelve chars', 'correct horse battery', 'hp3vq'.repeat(40), 'password engines']) {
      requireGoodPassword(good)
    }
    expect(() => requireGoodPassword('eleven char')).toThrow('Use at least 12 characters.')
    expect(() => requireGoodPassword('')).toThrow('Use at least 12 characters.')
    expect(() => requireGoodPassword('abcde'.repeat(41))).toThrow('Use at most 200 characters.')
    expect(() => requireGoodPassword('abababababab')).toThrow('Use at least 5 different characters.')
  })

  test('are refused when they are common, or what an attacker tries first', () => {
    const common = [
      'PasswordPassword',
      'password123456',
      '!!P@ssw0rd2026!',
      '1q2w3e4r5t6y',
      'abcdefghijklm',
      '0987654321098',
    ]
    const known = ['ada.lovelace@example.com', 'ada.lovelace2026', 'LovelaceLovelace']
    for (const password of [...common, ...known, 'qwertyuiopasdf', '            abcd']) {
      const refuse = () => requireGoodPassword(password, ['ada.lovelace@example.com', 'Lovelace', null])
      expect(refuse, password).toThrow(expect.objectContaining({ member: 'password' }))
    }
    for (const password of known.slice(0, 2)) requireGoodPassword(password)
  })

  test('are stored as salted Argon2id hashes', async () => {
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
