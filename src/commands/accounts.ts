/** The commands `accounts` and `users`, and the account that a command is about. */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { type Administration, openAdministration } from '../app.ts'
import { type Config, readConfig } from '../config/config.ts'
import { urlOf } from '../contract/listener.ts'
import type { Account, Accounts } from '../domain/accounts/accounts.ts'
import type { User } from '../domain/accounts/user.ts'
import type { Users } from '../domain/accounts/users.ts'
import { operator } from '../domain/audit-log/audit-log.ts'
import { nameError } from '../domain/display-names.ts'
import { announce, CommandError, print, table } from './output.ts'

export interface AccountOptions {
  account?: string
  /** Default: the account's first one. */
  environment?: string
  json?: boolean
}

/**
 * Opens the store for as long as `act` takes.
 *
 * @param creates whether a store that does not exist is created. Otherwise it is an error: with a mistyped DATA_DIR, the
 * command would seem to succeed.
 */
export async function withAdministration(
  act: (administration: Administration, config: Config) => Promise<void>,
  { creates = false } = {},
): Promise<void> {
  const config = readConfig(process.env)
  if (!creates) await requireStore(config)
  const isNew = config.DATABASE_URL === undefined && !existsSync(join(config.DATA_DIR, 'service.db'))
  const administration = await announce('Opening the store', openAdministration(config))
  if (isNew) process.stderr.write(`Created a new store in ${config.DATA_DIR}.\n`)
  await act(administration, config).finally(() => administration.close())
}

/** @throws {CommandError} if there is no store. */
export async function requireStore({ DATA_DIR, DATABASE_URL }: Config): Promise<void> {
  const refuse = (place: string, setting: string) => {
    throw new CommandError(
      `There is no store in ${place}: set ${setting} as the service has it, or start the service once, which creates a store.`,
    )
  }
  if (DATABASE_URL === undefined) {
    if (!existsSync(join(DATA_DIR, 'service.db'))) refuse(DATA_DIR, 'DATA_DIR')
    return
  }
  const { inspectDatabase } = await import('../storage/postgres/postgres-inspection.ts')
  // If the database cannot be reached, opening the store says why.
  const inspection = await inspectDatabase(DATABASE_URL).catch(() => undefined)
  await inspection?.close()
  if (inspection && !inspection.isInitialized) refuse(inspection.path, 'DATABASE_URL')
}

export async function createAccount(options: { name: string; scopes?: boolean; json?: boolean }): Promise<void> {
  const name = parseName(options.name)
  await withAdministration(
    async ({ accounts, links }, config) => {
      const account = await accounts.create({ name, scopesEnabled: options.scopes ?? false })
      const token = await links.createWelcomeLink(account.id)
      const welcomeUrl = token === undefined ? null : linkUrl(config, token)
      if (options.json) return print(JSON.stringify({ ...toRow(account), welcomeUrl }))
      print(`Created the account "${account.name}": ${account.id}`)
      print(`Its first admin signs up with this link, which works once, within a day:\n  ${welcomeUrl}`)
    },
    { creates: true },
  )
}

export async function listAccounts(options: { json?: boolean }): Promise<void> {
  await withAdministration(async ({ accounts }) => {
    const all = await accounts.list()
    const hasSeveral = all.some(({ environment }) => environment !== null)
    const rows = all.map((account) => ({ ...toRow(account), ...(hasSeveral && toEnvironmentMembers(account)) }))
    print(options.json ? JSON.stringify(rows) : table(rows))
  })
}

function toRow({ id, name, scopesEnabled, createdAt }: Account) {
  return { id, name, scopesEnabled, createdAt: new Date(createdAt).toISOString() }
}

function toEnvironmentMembers({ id, ownerId, environment }: Account) {
  return { environment, environmentOf: ownerId === id ? null : ownerId }
}

export async function listUsers(options: AccountOptions): Promise<void> {
  await withAdministration(async ({ accounts, users }) => {
    const rows = (await users.list((await findAccount(accounts, options)).ownerId)).map(toUserRow)
    print(options.json ? JSON.stringify(rows) : table(rows))
  })
}

export async function createSignInLink(options: AccountOptions & { email?: string }): Promise<void> {
  await withAdministration(async ({ accounts, users, links }, config) => {
    const { ownerId: accountId } = await findAccount(accounts, options)
    const user = await findUser(users, accountId, options.email ?? (await accounts.findAdminId(accountId)))
    const url = linkUrl(config, await links.createSignInLink(user, operator))
    if (options.json) return print(JSON.stringify({ user: toUserRow(user), url }))
    print(`${url}\n\nThis link signs in "${user.name}". It works once, within a day.`)
  })
}

export async function removeSecondFactor(options: AccountOptions & { email: string }): Promise<void> {
  await withAdministration(async ({ accounts, users }) => {
    const { ownerId: accountId } = await findAccount(accounts, options)
    const user = await findUser(users, accountId, options.email)
    const removed = await users.removeSecondFactor(accountId, user.id, operator)
    if (!removed) throw new CommandError(`"${user.name}" does not use two-factor authentication.`)
    print(`Removed. "${user.name}" is signed out everywhere and signs in with their password alone.`)
  })
}

async function findUser(users: Users, accountId: string, emailOrId: string): Promise<User> {
  const email = emailOrId.trim().toLowerCase()
  const user = (await users.list(accountId)).find((each) => each.id === emailOrId || each.email === email)
  if (user) return user
  throw new CommandError(`This account has no user with the e-mail ${emailOrId}. \`users list\` shows its users.`)
}

function toUserRow({ id, name, email, role, hasSecondFactor, lastSignedInAt }: User) {
  const signedIn = lastSignedInAt === null ? null : new Date(lastSignedInAt).toISOString()
  return { id, name, email, role, secondFactor: hasSecondFactor, lastSignedInAt: signedIn }
}

function linkUrl({ DASHBOARD_URL, DASHBOARD_PORT, HOST }: Config, token: string): string {
  return `${DASHBOARD_URL ?? urlOf(HOST, DASHBOARD_PORT)}/links/${token}`
}

export function parseName(option: string): string {
  const name = option.trim()
  const error = nameError(name)
  if (error) throw new CommandError(`--name is invalid: ${error}`)
  return name
}

export async function findAccountId(accounts: Accounts, options: AccountOptions): Promise<string> {
  return (await findAccount(accounts, options)).id
}

/** The account with the id or, without one, the only account; or one of its environments. @throws {CommandError} */
export async function findAccount(accounts: Accounts, { account: id, environment }: AccountOptions): Promise<Account> {
  const all = await accounts.list()
  const owners = all.filter((account) => account.ownerId === account.id)
  const found =
    id === undefined && owners.length === 1 ? owners[0] : all.find((account) => account.id === id?.toLowerCase())
  if (!found && id !== undefined) throw new CommandError(`There is no account ${id}. \`accounts list\` shows the ids.`)
  if (!found)
    throw new CommandError('There are several accounts: name one with --account ID. `accounts list` shows the ids.')
  return environment === undefined ? found : findEnvironment(all, found, environment)
}

/** @throws {CommandError} */
function findEnvironment(all: readonly Account[], owner: Account, name: string): Account {
  const environments = all.filter(({ ownerId }) => ownerId === owner.id)
  const found = environments.find(({ environment }) => environment === name)
  if (found) return found
  const names = environments.flatMap(({ environment }) => environment ?? [])
  const known = names.length > 0 ? `It has ${names.join(', ')}.` : 'Add one with `accounts environments add NAME`.'
  throw new CommandError(`The account has no environment "${name}". ${known}`)
}
