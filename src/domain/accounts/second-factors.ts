/** The second factor of a user: one-time codes by time (TOTP, RFC 6238), and recovery codes that each work once. */
import { createHmac, randomInt } from 'node:crypto'
import type { EncryptedColumn } from '../../storage/encrypted-columns.ts'
import { DecryptionError, type Encryption } from '../../storage/encryption.ts'
import type { Store, Transaction } from '../../storage/store.ts'
import { recordAudit } from '../audit-log/audit-log.ts'
import { changeCredentials, findUserRow, removeSecondFactor, requireEpoch, requirePassword } from './accounts.sql.ts'
import type { Proof } from './sessions.ts'
import { toActor, toUser, type User, UserError } from './user.ts'

/** The name that authenticator apps show. */
const issuer = 'execution-service'

const stepSeconds = 30
/** Codes of the step before and after are accepted, for clocks that differ. */
const stepsAround = 1
/** RFC 4226 recommends 160 bits. */
const secretBytes = 20

export const recoveryCodesMax = 10
/** 49 bits, from characters that do not look alike. */
const recoveryCodeLength = 10
const recoveryAlphabet = 'abcdefghjkmnpqrstuvwxyz23456789'

/** How long a user who has entered the password has to enter the code. */
export const challengeMinutes = 10
const challengeAad = 'second-factor-challenge'

function secretAad(userId: string): string {
  return `users/${userId}/totp`
}

export const encryptedInUsers: readonly EncryptedColumn[] = [
  { table: 'users', key: ['id'], column: 'totp_secret', aadColumns: ['id'], aad: secretAad },
]

/** A user who has proved their identity with one factor, and who needs the second one. */
export interface Challenge {
  user: User
  how: NonNullable<Proof>['how']
  /** As in `NewSession`. */
  byLink: boolean
}

/** What proves that a change of the second factor comes from the user. */
export interface CurrentProof {
  password: string
  /** A code of the present app, or a recovery code. Ignored if there is no second factor. */
  code: string
}

export class SecondFactors {
  readonly #store: Store
  readonly #encryption: Encryption
  readonly #now: () => number

  constructor(store: Store, encryption: Encryption, now: () => number = Date.now) {
    this.#store = store
    this.#encryption = encryption
    this.#now = now
  }

  /** A new secret in Base32, which `setUp` stores once the user has proved that their app has it. */
  async createSecret(): Promise<string> {
    const { Secret } = await totp()
    return new Secret({ size: secretBytes }).base32
  }

  /** The address that an authenticator app reads from the QR code. */
  async setUpUri(user: User, secret: string): Promise<string> {
    const { Secret, TOTP } = await totp()
    return new TOTP({ issuer, label: user.email ?? user.name, secret: Secret.fromBase32(secret) }).toString()
  }

  /**
   * Sets up or replaces the second factor, and ends all sessions of the user.
   *
   * @param current the present password and, if there is one, second factor.
   * @throws {UserError}
   */
  async setUp(user: User, { secret, code }: { secret: string; code: string }, current: CurrentProof) {
    const step = isSecret(secret) ? await this.#findStep(secret, code) : undefined
    if (step === undefined) throw new UserError('The code is incorrect. Enter the one that your app shows now.', 'code')
    const proven = await this.#prove(user, current)
    const totp_secret = this.#encryption.encrypt(secret, secretAad(user.id))
    const { codes, hashes } = createRecoveryCodes(secret)
    const changed = await this.#store.write(async (tx) => {
      await requireEpoch(tx, proven)
      await replaceRecoveryCodes(tx, user, hashes)
      await recordAudit(tx, user.accountId, { action: 'user.secondFactorSetUp', by: toActor(user) })
      return changeCredentials(tx, user, { totp_secret, totp_step: step })
    })
    return { user: changed, codes }
  }

  /** Replaces the recovery codes, and returns the new ones. @throws {UserError} */
  async replaceRecoveryCodes(user: User, current: CurrentProof): Promise<string[]> {
    const secret = await this.#findSecret(user)
    if (secret === undefined) throw new UserError('Set up two-factor authentication first.')
    const proven = await this.#prove(user, current)
    const { codes, hashes } = createRecoveryCodes(secret)
    await this.#store.write(async (tx) => {
      await requireEpoch(tx, proven)
      await replaceRecoveryCodes(tx, user, hashes)
      await recordAudit(tx, user.accountId, { action: 'user.recoveryCodesReplaced', by: toActor(user) })
    })
    return codes
  }

  async countRecoveryCodes(userId: string): Promise<number> {
    const codes = this.#store.read.query.selectFrom('recovery_codes').where('user_id', '=', userId)
    return (await codes.select((it) => it.fn.countAll<number>().as('count')).executeTakeFirstOrThrow()).count
  }

  /** Removes the user's own second factor, and ends all their sessions. @throws {UserError} */
  async remove(user: User, current: CurrentProof): Promise<User> {
    const proven = await this.#prove(user, current)
    return this.#store.write(async (tx) => {
      await requireEpoch(tx, proven)
      await recordAudit(tx, user.accountId, { action: 'user.secondFactorRemoved', by: toActor(user) })
      return removeSecondFactor(tx, user)
    })
  }

  /** Proves, for some minutes, that the user has passed the first factor. */
  createChallenge({ user, ...proof }: Challenge): string {
    const content = {
      id: user.id,
      epoch: user.credentialsEpoch,
      proof,
      expiresAt: this.#now() + challengeMinutes * 60_000,
    }
    return Buffer.from(this.#encryption.encrypt(JSON.stringify(content), challengeAad)).toString('base64url')
  }

  /** Returns `undefined` for a challenge that is forged, has expired, or precedes a change of the credentials. */
  async readChallenge(text: string): Promise<Challenge | undefined> {
    try {
      const { id, epoch, proof, expiresAt } = JSON.parse(
        this.#encryption.decrypt(Buffer.from(text, 'base64url'), challengeAad),
      )
      const row = expiresAt > this.#now() ? await findUserRow(this.#store.read, id) : undefined
      return row?.totp_secret && row.credentials_epoch === epoch ? { user: toUser(row), ...proof } : undefined
    } catch (error) {
      if (error instanceof DecryptionError) return undefined
      throw error
    }
  }

  /** Uses up the code that the user's app shows. Returns whether it was accepted: each code is, once. */
  async useCode(user: User, code: string): Promise<boolean> {
    const secret = await this.#findSecret(user)
    const step = secret === undefined ? undefined : await this.#findStep(secret, code)
    if (step === undefined) return false
    return this.#store.write(async ({ query }) => {
      const row = query.updateTable('users').set({ totp_step: step }).where('id', '=', user.id)
      const unused = row.where('credentials_epoch', '=', user.credentialsEpoch).where('totp_step', '<', step)
      return (await unused.executeTakeFirst()).numUpdatedRows > 0n
    })
  }

  /** Uses up one of the user's recovery codes. Returns whether it was one. */
  async useRecoveryCode(user: User, text: string): Promise<boolean> {
    const secret = await this.#findSecret(user)
    if (secret === undefined) return false
    const hash = hashRecoveryCode(text.toLowerCase().replaceAll(/[\s-]/g, ''), secret)
    return this.#store.write(async ({ query }) => {
      const used = query.deleteFrom('recovery_codes').where('user_id', '=', user.id).where('hash', '=', hash)
      return (await used.executeTakeFirst()).numDeletedRows > 0n
    })
  }

  /** Who knows the password alone, or uses an open session, cannot change the second factor. @throws {UserError} */
  async #prove(user: User, { password, code }: CurrentProof): Promise<User> {
    const proven = await requirePassword(this.#store, user, password)
    const isProven =
      (await this.#findSecret(proven)) === undefined ||
      (await this.useCode(proven, code)) ||
      (await this.useRecoveryCode(proven, code))
    if (isProven) return proven
    throw new UserError('Enter a code of your present app that was not used yet, or a recovery code.', 'currentCode')
  }

  /** The secret of this credentials epoch. */
  async #findSecret({ id, credentialsEpoch }: User): Promise<string | undefined> {
    const row = await findUserRow(this.#store.read, id)
    if (!row?.totp_secret || row.credentials_epoch !== credentialsEpoch) return undefined
    return this.#encryption.decrypt(row.totp_secret, secretAad(id))
  }

  /** The time step whose code this is, among those that are accepted now. */
  async #findStep(secret: string, text: string): Promise<number | undefined> {
    const code = text.replaceAll(/\s/g, '')
    if (!/^\d{6}$/.test(code)) return undefined
    const { Secret, TOTP } = await totp()
    const timestamp = this.#now()
    const generator = new TOTP({ secret: Secret.fromBase32(secret), period: stepSeconds })
    const delta = generator.validate({ token: code, timestamp, window: stepsAround })
    return delta === null ? undefined : Math.floor(timestamp / 1000 / stepSeconds) + delta
  }
}

/** Whether a form has returned a secret of `createSecret`, and not a shorter one. */
function isSecret(text: string): boolean {
  return new RegExp(`^[A-Z2-7]{${(secretBytes * 8) / 5}}$`).test(text)
}

function createRecoveryCodes(secret: string) {
  const codes = Array.from({ length: recoveryCodesMax }, () =>
    Array.from({ length: recoveryCodeLength }, () => recoveryAlphabet[randomInt(recoveryAlphabet.length)]).join(''),
  )
  const hashes = codes.map((code) => hashRecoveryCode(code, secret))
  return { codes: codes.map((code) => `${code.slice(0, 5)}-${code.slice(5)}`), hashes }
}

/** Keyed with the secret, which is encrypted, so the store alone does not help to guess codes. */
function hashRecoveryCode(code: string, secret: string): Buffer {
  return createHmac('sha256', secret).update(code).digest()
}

async function replaceRecoveryCodes({ query }: Transaction, { id }: User, hashes: Buffer[]): Promise<void> {
  await query.deleteFrom('recovery_codes').where('user_id', '=', id).execute()
  await query
    .insertInto('recovery_codes')
    .values(hashes.map((hash) => ({ user_id: id, hash })))
    .execute()
}

/** Loaded at first use. */
function totp() {
  return import('otpauth')
}
