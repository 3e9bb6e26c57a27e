/** `accounts create` and `accounts list`, and which account a command means. */
import type { Account, Accounts } from '../domain/accounts/accounts.ts'
import { nameError } from '../domain/display-names.ts'
import { withAdministration } from './administration.ts'
import { CommandError } from './exit-with-error.ts'
import { print, table } from './print.ts'

export async function createAccount(options: { name: string; scopes?: boolean; json?: boolean }): Promise<void> {
  const name = nameOf(options.name)
  await withAdministration(async ({ accounts, links, linkUrl }) => {
    const account = await accounts.create({ name, scopesEnabled: options.scopes ?? false })
    const token = await links.createWelcomeLink(account.id)
    const welcomeUrl = token === undefined ? null : linkUrl(token)
    if (options.json) return print(JSON.stringify({ ...shown(account), welcomeUrl }))
    print(`Created the account "${account.name}": ${account.id}`)
    print(`This link makes whoever opens it its owner. It works once, within a day:\n  ${welcomeUrl}`)
  })
}

export async function listAccounts(options: { json?: boolean }): Promise<void> {
  await withAdministration(async ({ accounts }) => {
    const found = (await accounts.list()).map(shown)
    print(options.json ? JSON.stringify(found) : table(found))
  })
}

/** What `--name` says. */
export function nameOf(option: string): string {
  const name = option.trim()
  const fault = nameError(name)
  if (fault) throw new CommandError(`--name is no name: ${fault}`)
  return name
}

/** The account that was named, or the only one there is. */
export async function accountOf(accounts: Accounts, id: string | undefined): Promise<string> {
  const all = await accounts.list()
  const found = id === undefined && all.length === 1 ? all[0] : all.find((account) => account.id === id?.toLowerCase())
  if (found) return found.id
  if (id !== undefined) throw new CommandError(`There is no account ${id}; \`accounts list\` shows them.`)
  throw new CommandError('There are several accounts: say which with --account ID; `accounts list` shows them.')
}

function shown({ id, name, scopesEnabled, createdAt }: Account) {
  return { id, name, scopesEnabled, createdAt: new Date(createdAt).toISOString() }
}
