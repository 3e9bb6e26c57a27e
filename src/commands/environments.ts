/** The commands `accounts environments add`, `list` and `remove`. They work while the service runs. */
import type { Account } from '../domain/accounts/accounts.ts'
import { operator } from '../domain/audit-log/audit-log.ts'
import { withReceipt } from './account-data.ts'
import { type AccountOptions, findAccount, withAdministration } from './accounts.ts'
import { CommandError, print, table } from './output.ts'

export async function addEnvironment(name: string, options: AccountOptions & { first?: string }): Promise<void> {
  await withAdministration(async ({ accounts, environments }) => {
    const { ownerId } = await findAccount(accounts, options)
    const created = await environments.add(ownerId, { name, first: options.first }, operator)
    if (options.json) return print(JSON.stringify(toRow(created)))
    const [first] = await environments.list(ownerId)
    print(`Added the environment "${name}": ${created.id}`)
    print(
      `Everything from before is in "${first?.environment}". Create a key with \`keys create --environment ${name}\`.`,
    )
  })
}

export async function listEnvironments(options: AccountOptions): Promise<void> {
  await withAdministration(async ({ accounts, environments }) => {
    const all = await environments.list((await findAccount(accounts, options)).ownerId)
    const named = all.length > 1 ? all.map(toRow) : []
    if (options.json) return print(JSON.stringify(named))
    if (named.length === 0)
      return print('The account has one environment. Add another with `accounts environments add NAME`.')
    print(table(named))
  })
}

export async function removeEnvironment(
  name: string,
  options: AccountOptions & { confirm?: string; receipt?: string },
): Promise<void> {
  await withAdministration(async ({ accounts, environments }) => {
    const { ownerId } = await findAccount(accounts, options)
    const found = await environments.find(ownerId, name)
    if (!found) throw unknown(name)
    if (options.confirm !== name && found.id !== ownerId) {
      throw new CommandError(
        `This deletes the environment "${name}" with all its runs, workflows, browser contexts and keys. Repeat its name with --confirm to go on.`,
      )
    }
    await withReceipt(options, `environment "${name}" (${found.id})`, async () => {
      const receipt = await environments.remove(ownerId, name, operator)
      if (!receipt) throw unknown(name)
      return receipt
    })
  })
}

function unknown(name: string): CommandError {
  return new CommandError(`The account has no environment "${name}". \`accounts environments list\` shows their names.`)
}

function toRow({ id, environment, createdAt }: Account) {
  return { environment, id, createdAt: new Date(createdAt).toISOString() }
}
