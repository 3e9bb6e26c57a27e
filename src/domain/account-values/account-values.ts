/** Stores, lists and deletes the secrets and settings of accounts. */
import { invalidBody } from '../../contract/problem.ts'
import { requireValid } from '../../contract/value-checks.ts'
import type { Cursors, PageRequest } from '../../storage/cursors.ts'
import type { Encryption } from '../../storage/encryption.ts'
import { wakeRuns, wokenMax } from '../../storage/runs/wait-statements.ts'
import { ignoreUnavailable, type Store, type Transaction } from '../../storage/store.ts'
import type { AccountValuesTable } from '../../storage/tables/account-tables.ts'
import { type Actor, type ApiKeyUse, recordAudit, toActor } from '../audit-log/audit-log.ts'
import { nextValuesVersion, type ValueKind, valueAad, waitReason } from './account-values.sql.ts'

/** Secrets, and settings, of an account. */
export const valuesMax = 100

/** Characters of a setting as JSON. */
const settingLengthMax = 16_384

export interface AccountValue {
  name: string
  version: number
  updatedAt: number
  updatedBy: Actor
  /** Absent for a secret. */
  value?: unknown
}

export class AccountValues {
  readonly #store: Store
  readonly #encryption: Encryption
  readonly #cursors: Cursors
  readonly #now: () => number

  constructor(store: Store, encryption: Encryption, cursors: Cursors, now: () => number = Date.now) {
    this.#store = store
    this.#encryption = encryption
    this.#cursors = cursors
    this.#now = now
  }

  /** A page, by name; `undefined` for a cursor of another list. */
  async list(accountId: string, kind: ValueKind, request: PageRequest) {
    const all = this.#store.read.query.selectFrom('account_values').selectAll()
    const ofKind = all.where('account_id', '=', accountId).where('kind', '=', kind).orderBy('name')
    const page = await this.#cursors.page(['account-values', accountId, kind], request, async (after, limit) => {
      const rows = after === undefined ? ofKind : ofKind.where('name', '>', after)
      return (await rows.limit(limit).execute()).map((row) => ({ ...row, id: row.name }))
    })
    return page && { values: page.rows.map((row) => this.#toValue(row)), nextCursor: page.nextCursor }
  }

  /** All of a kind, by name. */
  async listAll(accountId: string, kind: ValueKind): Promise<AccountValue[]> {
    const page = await this.list(accountId, kind, { limit: valuesMax })
    return page?.values ?? []
  }

  /**
   * Stores a version, and makes runs ready that wait for the value. `undefined` when the account has `valuesMax` others.
   * The transaction excludes all other writes: a run cannot begin to wait in between.
   *
   * @throws {Problem} if the document does not allow the name or the value.
   */
  async put(
    accountId: string,
    kind: ValueKind,
    name: string,
    value: unknown,
    by: Actor | ApiKeyUse,
  ): Promise<AccountValue | undefined> {
    requireValid('Setting', { name })
    requireValid(kind === 'secret' ? 'PutSecretRequest' : 'PutSettingRequest', { value })
    if (kind === 'setting' && JSON.stringify(value).length > settingLengthMax)
      throw invalidBody('/value', `has more than ${settingLengthMax} characters as JSON`)
    const stored = await this.#store.write(async (tx) => {
      const ofKind = tx.query.selectFrom('account_values').where('account_id', '=', accountId).where('kind', '=', kind)
      const names = await ofKind.select(['name', 'version']).execute()
      const before = names.find((each) => each.name === name)
      if (!before && names.length >= valuesMax) return undefined
      const actor = await toActor(tx, by)
      const at = this.#now()
      const row: AccountValuesTable = {
        ...{ account_id: accountId, kind, name, version: (before?.version ?? 0) + 1 },
        ...{ updated_at: at, updated_by: JSON.stringify(actor) },
        value: this.#encryption.encrypt(JSON.stringify(value), valueAad(accountId, kind, name)),
      }
      const { version, updated_at, updated_by, value: encrypted } = row
      await tx.query
        .insertInto('account_values')
        .values(row)
        .onConflict((conflict) =>
          conflict
            .columns(['account_id', 'kind', 'name'])
            .doUpdateSet({ version, updated_at, updated_by, value: encrypted }),
        )
        .execute()
      await tx.all(nextValuesVersion, [accountId])
      await audit(tx, accountId, `${kind}.stored`, name, actor, { version }, at)
      return { row, woken: await wakeRuns(tx, at, accountId, waitReason(kind, name)) }
    })
    if (!stored) return undefined
    await this.#wakeRest(accountId, kind, name, stored.woken)
    return this.#toValue(stored.row)
  }

  /** Many runs may wait: one transaction for all would keep other writes waiting. */
  async #wakeRest(accountId: string, kind: ValueKind, name: string, woken: number): Promise<void> {
    for (let count = woken; count > 0; ) {
      this.#store.notify('queue')
      this.#store.notify('runs')
      if (count < wokenMax) return
      count = await this.#store.write((tx) => wakeRuns(tx, this.#now(), accountId, waitReason(kind, name)))
    }
  }

  /** Erases the value. Returns whether it existed. */
  async delete(accountId: string, kind: ValueKind, name: string, by: Actor | ApiKeyUse): Promise<boolean> {
    const isDeleted = await this.#store.write(async (tx) => {
      const values = tx.query.deleteFrom('account_values').where('account_id', '=', accountId).where('kind', '=', kind)
      const [row] = await values.where('name', '=', name).returning('version').execute()
      if (!row) return false
      await tx.all(nextValuesVersion, [accountId])
      await audit(tx, accountId, `${kind}.deleted`, name, by, { version: row.version }, this.#now())
      return true
    })
    if (isDeleted) await this.#store.scrub().catch(ignoreUnavailable)
    return isDeleted
  }

  #toValue(row: AccountValuesTable): AccountValue {
    const { account_id: accountId, kind, name, version, updated_at: updatedAt, updated_by, value } = row
    const described = { name, version, updatedAt, updatedBy: JSON.parse(updated_by) }
    if (kind === 'secret') return described
    return { ...described, value: JSON.parse(this.#encryption.decrypt(value, valueAad(accountId, kind, name))) }
  }
}

async function audit(
  tx: Transaction,
  accountId: string,
  action: `${ValueKind}.${'stored' | 'deleted'}`,
  name: string,
  by: Actor | ApiKeyUse,
  details: object,
  at: number,
): Promise<void> {
  const subject = { id: name, name }
  await recordAudit(tx, accountId, { action, by: await toActor(tx, by), subject, details: { ...details }, at })
}
