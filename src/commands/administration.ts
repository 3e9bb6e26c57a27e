/** What the operator's commands need of the installation; they work beside a service that runs. */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { type Config, readConfig } from '../config.ts'
import { urlOf } from '../contract/listener.ts'
import { Accounts } from '../domain/accounts/accounts.ts'
import { SignInLinks } from '../domain/accounts/sign-in-links.ts'
import { Users } from '../domain/accounts/users.ts'
import { ApiKeys } from '../domain/api-keys/api-keys.ts'
import { openStore } from '../domain/installation.ts'
import { knownScopes } from '../openapi/served-documents.ts'

export interface Administration {
  accounts: Accounts
  users: Users
  links: SignInLinks
  apiKeys: ApiKeys
  /** Where the service shows the page of a link. */
  linkUrl(token: string): string
}

/** Opens the store, making it and the first account where needed, for as long as `act` takes. */
export async function withAdministration(act: (administration: Administration) => Promise<void>): Promise<void> {
  const config = readConfig(process.env)
  const isNew = config.DATABASE_URL === undefined && !existsSync(join(config.DATA_DIR, 'service.db'))
  const store = await openStore(config)
  // Whoever has forgotten DATA_DIR would look for a key that was made elsewhere.
  if (isNew) process.stderr.write(`Made a new store in ${config.DATA_DIR}.\n`)
  const accounts = new Accounts(store)
  const apiKeys = new ApiKeys(store, knownScopes())
  try {
    await accounts.createFirst()
    const users = new Users(store)
    const links = new SignInLinks(store)
    await act({ accounts, users, links, apiKeys, linkUrl: (token) => `${dashboardUrlOf(config)}/links/${token}` })
  } finally {
    await apiKeys.close()
    await store.close()
  }
}

/** Where a browser reaches the dashboard of a service with this configuration. */
function dashboardUrlOf({ DASHBOARD_URL, DASHBOARD_PORT, HOST }: Config): string {
  return DASHBOARD_URL ?? urlOf(HOST, DASHBOARD_PORT)
}
