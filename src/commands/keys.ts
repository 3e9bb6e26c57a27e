/** `keys create`, `keys list` and `keys delete`. */
import type { ApiKey } from '../domain/api-keys/api-key.ts'
import { operator } from '../domain/audit-log/audit-log.ts'
import { accountOf, nameOf } from './accounts.ts'
import { withAdministration } from './administration.ts'
import { CommandError } from './exit-with-error.ts'
import { print, table } from './print.ts'

interface AccountOption {
  account?: string
}

interface CreateOptions extends AccountOption {
  name: string
  scopes?: string
  expiresIn?: string
  json?: boolean
}

export async function createKey(options: CreateOptions): Promise<void> {
  const name = nameOf(options.name)
  const expiresAt = options.expiresIn === undefined ? null : Date.now() + millisecondsOf(options.expiresIn)
  const scopes = options.scopes?.split(',').map((scope) => scope.trim()) ?? null
  await withAdministration(async ({ accounts, apiKeys }) => {
    const accountId = await accountOf(accounts, options.account)
    const userId = await accounts.findOwnerId(accountId)
    const key = await apiKeys.create({ accountId, userId, name, scopes, expiresAt }, operator)
    if (options.json) return print(JSON.stringify({ id: key.id, value: key.value, ...shown(key) }))
    print(key.value)
    // Beside it, so that `$(… keys create --name ci)` is the value alone.
    process.stderr.write(`\nThis is the value of "${key.name}". It is not shown again: store it now.\n`)
  })
}

export async function listKeys(options: AccountOption & { json?: boolean }): Promise<void> {
  await withAdministration(async ({ accounts, apiKeys }) => {
    const keys = await apiKeys.list(await accountOf(accounts, options.account))
    if (options.json) return print(JSON.stringify(keys.map((key) => ({ id: key.id, ...shown(key) }))))
    if (keys.length === 0) return print('There is no API key. Create one with `keys create --name NAME`.')
    const rows = keys.map((key) => ({ id: key.id, ...shown(key), scopes: key.scopes?.join(',') ?? 'all' }))
    print(table(rows))
  })
}

export async function deleteKey(id: string, options: AccountOption): Promise<void> {
  await withAdministration(async ({ accounts, apiKeys }) => {
    const deleted = await apiKeys.delete(await accountOf(accounts, options.account), id.toLowerCase(), operator)
    if (!deleted) throw new CommandError(`There is no API key with the id ${id}; \`keys list\` shows the ids.`)
    print('Deleted. The key is refused from now on.')
  })
}

function shown({ name, prefix, scopes, createdAt, lastUsedAt, expiresAt, expired }: ApiKey) {
  const moment = (at: number | null) => (at === null ? null : new Date(at).toISOString())
  const moments = { createdAt: moment(createdAt), lastUsedAt: moment(lastUsedAt), expiresAt: moment(expiresAt) }
  return { name, prefix, scopes, ...moments, state: expired ? 'expired' : 'active' }
}

const units: Record<string, number> = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 }
const expiresInMillisecondsMax = 10 * 365 * 86_400_000

function millisecondsOf(time: string): number {
  const [, amount, unit] = /^(\d{1,9})([smhd])$/.exec(time) ?? []
  const milliseconds = Number(amount) * (units[unit ?? ''] ?? 0)
  if (milliseconds > 0 && milliseconds <= expiresInMillisecondsMax) return milliseconds
  throw new CommandError(
    `--expires-in is "${time}": give a number and s, m, h or d, such as 90d, of ten years at most.`,
  )
}
