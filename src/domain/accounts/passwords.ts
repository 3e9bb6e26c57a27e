/** The rules for passwords, by NIST SP 800-63B, and their hashes. */
import { readFileSync } from 'node:fs'
import { UserError } from './user.ts'

/** NIST asks for a minimum length and a list of common passwords, not for kinds of characters. */
export const passwordLengthMin = 12
const passwordLengthMax = 200
const distinctCharactersMin = 5

/**
 * @param context what an attacker tries first for this user, such as their name and e-mail address.
 * @throws {UserError} if the password does not meet the rules.
 */
export function requireGoodPassword(password: string, context: readonly (string | null)[] = []): void {
  const refuse = (message: string): never => {
    throw new UserError(message, 'password')
  }
  if (password.length < passwordLengthMin) refuse(`Use at least ${passwordLengthMin} characters.`)
  if (password.length > passwordLengthMax) refuse(`Use at most ${passwordLengthMax} characters.`)
  if (new Set(password).size < distinctCharactersMin)
    refuse(`Use at least ${distinctCharactersMin} different characters.`)
  if (isCommon(password, context)) refuse('This password is easy to guess. Use several words, or let a program choose.')
}

const walks = ['abcdefghijklmnopqrstuvwxyz', '0123456789'.repeat(4), 'qwertyuiopasdfghjklzxcvbnm']

/** Whether it is a common password, a walk on the keyboard or a word of the context, repeated or between digits and symbols. */
function isCommon(password: string, context: readonly (string | null)[]): boolean {
  const text = password.normalize('NFKC').toLowerCase()
  const core = text.replaceAll(/^[^\p{L}]+|[^\p{L}]+$/gu, '')
  const guesses = new Set([text, core].flatMap((each) => [each, /^(.+?)\1+$/s.exec(each)?.[1] ?? each]))
  guesses.delete('')
  if (walks.some((walk) => [...guesses].some((each) => walk.includes(each) || walk.includes(reverse(each)))))
    return true
  const words = context.flatMap((each) => [each ?? '', each?.split('@')[0] ?? ''])
  if (words.some((each) => guesses.has(each.toLowerCase()))) return true
  return readCommonPasswords().some((each) => guesses.has(each))
}

function reverse(text: string): string {
  return [...text].reverse().join('')
}

let commonPasswords: WeakRef<string[]> | undefined

/** 49,000 passwords, most common first. In a WeakRef: the list takes megabytes, and passwords change rarely. */
function readCommonPasswords(): string[] {
  const cached = commonPasswords?.deref()
  if (cached) return cached
  const url = import.meta.resolve('@zxcvbn-ts/language-common/src/passwords.json')
  const passwords: string[] = JSON.parse(readFileSync(new URL(url), 'utf8'))
  commonPasswords = new WeakRef(passwords)
  return passwords
}

/** Argon2id (RFC 9106) with OWASP's parameters, as a PHC string. Takes about 20 ms and 19 MiB, in a thread pool. */
export async function hashPassword(password: string): Promise<string> {
  return (await argon2()).hash(password.normalize('NFKC'))
}

/** Takes equally long without a hash, so that response times do not reveal which e-mail addresses exist. */
export async function verifyPassword(password: string, passwordHash: string | null): Promise<boolean> {
  placeholderHash ??= hashPassword(crypto.randomUUID())
  const { verify } = await argon2()
  const matches = await verify(passwordHash ?? (await placeholderHash), password.normalize('NFKC'))
  return matches && passwordHash !== null
}

let placeholderHash: Promise<string> | undefined

/** Loaded at first use: the native module takes 3 MB, which workers and most commands do without. */
function argon2() {
  return import('@node-rs/argon2')
}
