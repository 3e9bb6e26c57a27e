/** Passwords: what is accepted as one, and how it is kept (Argon2id, RFC 9106, with the library's OWASP parameters). */
import { hash, verify } from '@node-rs/argon2'

/** NIST SP 800-63B asks for length and not for kinds of characters. */
export const passwordLengthMin = 12
export const passwordLengthMax = 200

/** Why the password is not accepted, or `undefined`. */
export function passwordError(password: string): string | undefined {
  if (password.length < passwordLengthMin) return `Use at least ${passwordLengthMin} characters.`
  if (password.length > passwordLengthMax) return `Use at most ${passwordLengthMax} characters.`
  if (new Set(password).size < 5) return 'Use more different characters.'
  return undefined
}

/** The hash in the PHC string format. Takes some 20 ms and 19 MiB on a thread of its own. */
export function hashPassword(password: string): Promise<string> {
  return hash(password.normalize('NFKC'))
}

/** Whether it is the password behind `passwordHash`; takes as long when there is none, so that time tells nothing. */
export async function verifyPassword(password: string, passwordHash: string | null): Promise<boolean> {
  unknown ??= hashPassword(crypto.randomUUID())
  const matches = await verify(passwordHash ?? (await unknown), password.normalize('NFKC'))
  return matches && passwordHash !== null
}

let unknown: Promise<string> | undefined
