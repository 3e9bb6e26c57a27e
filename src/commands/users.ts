/** `users list` and `users sign-in-link`. */

import type { User } from '../domain/accounts/user.ts'
import type { Users } from '../domain/accounts/users.ts'
import { operator } from '../domain/audit-log/audit-log.ts'
import { accountOf } from './accounts.ts'
import { withAdministration } from './administration.ts'
import { CommandError } from './exit-with-error.ts'
import { print, table } from './print.ts'

interface Options {
  account?: string
  json?: boolean
}

export async function listUsers(options: Options): Promise<void> {
  await withAdministration(async ({ accounts, users }) => {
    const found = (await users.list(await accountOf(accounts, options.account))).map(shown)
    print(options.json ? JSON.stringify(found) : table(found))
  })
}

export async function makeSignInLink(options: Options & { email?: string }): Promise<void> {
  await withAdministration(async ({ accounts, users, links, linkUrl }) => {
    const accountId = await accountOf(accounts, options.account)
    const user = await userOf(users, accountId, options.email ?? (await accounts.findOwnerId(accountId)))
    const url = linkUrl(await links.createSignInLink(user, operator))
    if (options.json) return print(JSON.stringify({ user: shown(user), url }))
    print(`${url}\n\nThis link signs in "${user.name}". It works once, within a day.`)
  })
}

/** @param which the user's e-mail address or id. */
async function userOf(users: Users, accountId: string, which: string): Promise<User> {
  const user = (await users.list(accountId)).find(
    ({ id, email }) => id === which || email === which.trim().toLowerCase(),
  )
  if (user) return user
  throw new CommandError(`There is no user with the e-mail ${which} in this account; \`users list\` shows them.`)
}

function shown({ id, name, email, role, lastSignedInAt }: User) {
  return {
    id,
    name,
    email,
    role,
    lastSignedInAt: lastSignedInAt === null ? null : new Date(lastSignedInAt).toISOString(),
  }
}
