/** One-time codes of authenticator apps (RFC 6238), for workflows that sign in. */

/** A seed as it is stored: numbers, so that masking the values of secrets masks the seed and no common word. */
export interface TotpSeed {
  /** Base32. */
  seed: string
  /** Digits of a code, seconds for which it is valid, and bits of the hash: 1 for SHA-1, 256 or 512. */
  options: readonly [digits: number, period: number, hash: number]
}

const hashes: Record<string, number> = { SHA1: 1, SHA256: 256, SHA512: 512 }

/** The name of the seed among the secrets of a run; those of variables are JSON Pointers, which begin with a slash. */
export const totpSecret = 'totp'

/**
 * @param text Base32, in groups or lower case, or the `otpauth:` URI of a QR code.
 * @returns `undefined` if it is neither, or has other than 6 to 8 digits or a period of other than 15 to 300 seconds.
 */
export async function parseTotpSeed(text: string): Promise<TotpSeed | undefined> {
  const { Secret, TOTP, URI } = await import('otpauth')
  try {
    if (!text.startsWith('otpauth:')) {
      const seed = Secret.fromBase32(text.replaceAll(/[\s=-]/g, '').toUpperCase()).base32
      return seed === '' ? undefined : { seed, options: [6, 30, 1] }
    }
    const uri = URI.parse(text)
    const hash = hashes[uri.algorithm]
    if (!(uri instanceof TOTP) || hash === undefined) return undefined
    const { digits, period } = uri
    if (digits < 6 || digits > 8 || period < 15 || period > 300) return undefined
    return { seed: uri.secret.base32, options: [digits, period, hash] }
  } catch {
    return undefined
  }
}

/** The code at a time, the number of its period (RFC 6238: the time step), and for how many milliseconds it is valid. */
export async function totpCode(
  { seed, options: [digits, period, hash] }: TotpSeed,
  at: number,
): Promise<{ code: string; step: number; millisecondsLeft: number }> {
  const { Secret, TOTP } = await import('otpauth')
  const algorithm = Object.keys(hashes).find((name) => hashes[name] === hash) ?? 'SHA1'
  const totp = new TOTP({ secret: Secret.fromBase32(seed), digits, period, algorithm })
  const milliseconds = period * 1000
  const step = Math.floor(at / milliseconds)
  return { code: totp.generate({ timestamp: at }), step, millisecondsLeft: milliseconds - (at % milliseconds) }
}
