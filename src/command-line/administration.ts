/** What the operator's commands need of the installation; they work beside a service that runs. */
import { Accounts } from '../accounts/accounts.ts'
import { ApiKeys } from '../api-keys/api-keys.ts'
import { readConfig } from '../config.ts'
import { knownScopes } from '../documents.ts'
import { openStore } from '../installation.ts'

export interface Administration {
  accounts: Accounts
  apiKeys: ApiKeys
}

/** Opens the store, making it and the first account where needed, for as long as `act` takes. */
export async function withAdministration(act: (administration: Administration) => Promise<void>): Promise<void> {
  const store = await openStore(readConfig(process.env))
  const accounts = new Accounts(store)
  const apiKeys = new ApiKeys(store, knownScopes())
  try {
    await accounts.createFirst()
    await act({ accounts, apiKeys })
  } finally {
    await apiKeys.close()
    await store.close()
  }
}
