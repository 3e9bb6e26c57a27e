/** The commands `accounts export` and `accounts delete`. They work while the service runs. */
import { mkdir, readdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Administration } from '../app.ts'
import type { DeletionReceipt } from '../domain/accounts/account-deletion.ts'
import type { ExportSummary } from '../domain/accounts/account-export.ts'
import type { Account } from '../domain/accounts/accounts.ts'
import { type AccountOptions, findAccount, withAdministration } from './accounts.ts'
import { CommandError, print } from './output.ts'

export async function exportAccountData(
  directory: string,
  options: AccountOptions & { secrets?: boolean },
): Promise<void> {
  await withAccount(options, async ({ exportAccount, environments }, { id, name, ownerId, environment }) => {
    await createEmpty(directory)
    const summary = await exportAccount(id, directory, options.secrets ?? false)
    // One environment was asked for, or the account with all of them.
    const others = options.environment === undefined && ownerId === id ? (await environments.list(id)).slice(1) : []
    const ofOthers: Record<string, ExportSummary> = {}
    for (const other of others) {
      const path = join(directory, 'environments', other.environment ?? other.id)
      await createEmpty(path)
      ofOthers[other.environment ?? other.id] = await exportAccount(other.id, path, options.secrets ?? false)
    }
    const all = [summary, ...Object.values(ofOthers)]
    if (options.json) return print(JSON.stringify({ ...summary, ...(others.length > 0 && { environments: ofOthers }) }))
    const lines = all.reduce((total, each) => total + sum(each.lines), 0)
    const files = all.reduce((total, each) => total + each.files, 0)
    const subject = options.environment === undefined ? `account "${name}"` : `environment "${environment}"`
    print(`Exported the ${subject} to ${directory}: ${lines} lines of JSON and ${files} files.`)
    const secrets = 'It has secrets, cookies and results of steps in plain text: keep it as safe as the encryption key.'
    print(options.secrets ? secrets : 'Without secrets, cookies and results of steps, which --secrets adds.')
  })
}

export async function deleteAccountData(
  options: AccountOptions & { confirm?: string; receipt?: string },
): Promise<void> {
  await withAccount(options, async ({ deleteAccount, environments }, account) => {
    if (account.ownerId !== account.id) {
      const advice = `delete it with \`accounts environments remove ${account.environment}\``
      throw new CommandError(`The account ${account.id} is an environment: ${advice}.`)
    }
    if (options.confirm !== account.name) {
      throw new CommandError(
        `This deletes the account "${account.name}" with all its runs, workflows, browser contexts and users${describeOthers(await environments.list(account.id))}. Repeat its name with --confirm to go on.`,
      )
    }
    await withReceipt(options, `account "${account.name}" (${account.id})`, () => deleteAccount(account))
  })
}

/** If the receipt cannot be written, nothing is deleted. */
export async function withReceipt(
  { receipt: path, json }: { receipt?: string; json?: boolean },
  subject: string,
  act: () => Promise<DeletionReceipt>,
): Promise<void> {
  if (path !== undefined) await write(path, '')
  const receipt = await act()
  const text = `${JSON.stringify(receipt, null, 2)}\n`
  if (path !== undefined) await write(path, text)
  if (json) return print(text.trimEnd())
  const all = [receipt, ...(receipt.environments ?? [])]
  const rows = all.reduce((total, { deleted }) => total + sum(deleted), 0)
  const left = all.reduce((total, each) => total + each.left, 0)
  print(`Deleted the ${subject}: ${rows} rows, ${left} are left.`)
  print('Backups from before still have it, until you delete them.')
}

function describeOthers(environments: readonly Account[]): string {
  return environments.length > 1 ? `, in ${environments.length} environments` : ''
}

const sum = (counts: Record<string, number>) => Object.values(counts).reduce((total, count) => total + count, 0)

async function withAccount(
  options: AccountOptions,
  act: (administration: Administration, account: Account) => Promise<void>,
): Promise<void> {
  await withAdministration(async (administration) => {
    const { accounts } = administration
    await act(administration, await findAccount(accounts, options))
  })
}

async function createEmpty(directory: string): Promise<void> {
  try {
    await mkdir(directory, { recursive: true, mode: 0o700 })
    if ((await readdir(directory)).length === 0) return
  } catch (error) {
    throw new CommandError(`The directory ${directory} cannot be used: ${(error as Error).message}.`)
  }
  throw new CommandError(`The directory ${directory} is not empty: name a new one.`)
}

async function write(path: string, text: string): Promise<void> {
  try {
    await writeFile(path, text, { mode: 0o600 })
  } catch (error) {
    throw new CommandError(`The receipt ${path} cannot be written: ${(error as Error).message}.`)
  }
}
