/** The commands `keys create`, `keys list` and `keys delete`. */
import type { ApiKey } from '../domain/api-keys/api-key.ts'
import { operator } from '../domain/audit-log/audit-log.ts'
import { type AccountOptions, findAccountId, parseName, withAdministration } from './accounts.ts'
import { CommandError, print, table } from './output.ts'

interface CreateOptions extends AccountOptions {
  name: string
  scopes?: string
  workflows?: string
  expiresIn?: string
}

export async function createKey(options: CreateOptions): Promise<void> {
  const name = parseName(options.name)
  const expiresAt = options.expiresIn === undefined ? null : Date.now() + parseDuration(options.expiresIn)
  const scopes = parseList(options.scopes)
  const workflowIds = parseList(options.workflows)
  await withAdministration(
    async ({ accounts, apiKeys }) => {
      const accountId = await findAccountId(accounts, options)
      const userId = await accounts.findAdminId(accountId)
      const key = await apiKeys.create({ accountId, userId, name, scopes, workflowIds, expiresAt }, operator)
      if (options.json) return print(JSON.stringify({ id: key.id, value: key.value, ...toRow(key) }))
      print(key.value)
      // On standard error, so that `$(… keys create --name ci)` is the value alone.
      process.stderr.write(`\nThis is the API key "${key.name}". Copy it now: it won't be shown again.\n`)
    },
    { creates: true },
  )
}

export async function listKeys(options: AccountOptions): Promise<void> {
  await withAdministration(async ({ accounts, apiKeys }) => {
    const keys = await apiKeys.list(await findAccountId(accounts, options))
    if (options.json) return print(JSON.stringify(keys.map((key) => ({ id: key.id, ...toRow(key) }))))
    if (keys.length === 0) return print('No API keys. Create one with `keys create --name NAME`.')
    const listed = ({ scopes, workflowIds }: ApiKey) => ({
      scopes: scopes?.join(',') ?? 'all',
      workflows: workflowIds?.join(',') ?? 'all',
    })
    print(table(keys.map((key) => ({ id: key.id, ...toRow(key), ...listed(key) }))))
  })
}

export async function deleteKey(id: string, options: AccountOptions): Promise<void> {
  await withAdministration(async ({ accounts, apiKeys }) => {
    const deleted = await apiKeys.delete(await findAccountId(accounts, options), id.toLowerCase(), operator)
    if (!deleted) throw new CommandError(`There is no API key with the id ${id}. \`keys list\` shows the ids.`)
    print('Deleted. Requests with this key are refused from now on.')
  })
}

function parseList(text: string | undefined): string[] | null {
  return text?.split(',').map((each) => each.trim()) ?? null
}

function toRow({ name, prefix, scopes, workflowIds: workflows, createdAt, lastUsedAt, expiresAt, expired }: ApiKey) {
  const time = (at: number | null) => (at === null ? null : new Date(at).toISOString())
  const times = { createdAt: time(createdAt), lastUsedAt: time(lastUsedAt), expiresAt: time(expiresAt) }
  return { name, prefix, scopes, workflows, ...times, state: expired ? 'expired' : 'active' }
}

const unitMilliseconds: Record<string, number> = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 }
const durationMillisecondsMax = 10 * 365 * 86_400_000

function parseDuration(text: string): number {
  const [, amount, unit = ''] = /^(\d{1,9})([smhd])$/.exec(text) ?? []
  const milliseconds = Number(amount) * (unitMilliseconds[unit] ?? 0)
  if (milliseconds > 0 && milliseconds <= durationMillisecondsMax) return milliseconds
  throw new CommandError(
    `--expires-in "${text}" is invalid: use a number and s, m, h or d, such as 90d; at most ten years.`,
  )
}
