/** The commands `secrets` and `settings`. They work while the service runs. */
import { text } from 'node:stream/consumers'
import type { ValueKind } from '../domain/account-values/account-values.sql.ts'
import { type AccountValue, settingLengthMax, valuesMax } from '../domain/account-values/account-values.ts'
import { findDeclaring } from '../domain/account-values/declared-values.ts'
import { secretLength } from '../domain/account-values/secret-store.ts'
import { operator } from '../domain/audit-log/audit-log.ts'
import { declaredNamePattern } from '../domain/workflows/workflow.ts'
import { type AccountOptions, findAccountId, withAdministration } from './accounts.ts'
import { CommandError, print, table } from './output.ts'

/** Not by an argument, which other users of the machine see. */
export async function putValue(kind: ValueKind, name: string, options: AccountOptions): Promise<void> {
  if (!declaredNamePattern.test(name))
    throw new CommandError(`${name} is no name of a ${kind}: use 1 to 64 capital letters, digits and underscores.`)
  const input = (await text(process.stdin)).replace(/\r?\n$/, '')
  const value = kind === 'secret' ? checkSecret(input) : parseSetting(input)
  await withAdministration(async ({ accounts, openValues }) => {
    const accountId = await findAccountId(accounts, options)
    const stored = await (await openValues()).put(accountId, kind, name, value, operator)
    if (!stored) throw new CommandError(`The account has ${valuesMax} ${kind}s. Delete one first.`)
    print(`Stored version ${stored.version} of ${name}. Later attempts get it, and runs that waited for it start now.`)
  })
}

function checkSecret(value: string): string {
  const { min, max } = secretLength
  if (value.length >= min && value.length <= max) return value
  throw new CommandError(
    `The secret has ${value.length} characters: it must have ${min} to ${max}. Write it to the standard input.`,
  )
}

function parseSetting(input: string): unknown {
  let value: unknown
  try {
    value = JSON.parse(input)
  } catch {
    throw new CommandError('The setting is not JSON. A text needs quotes: echo \'"text"\' | … settings put NAME')
  }
  if (JSON.stringify(value).length <= settingLengthMax) return value
  throw new CommandError(`The setting has more than ${settingLengthMax} characters.`)
}

export async function listValues(kind: ValueKind, options: AccountOptions): Promise<void> {
  await withAdministration(async ({ accounts, deployments, openValues }) => {
    const accountId = await findAccountId(accounts, options)
    const declaring = findDeclaring(deployments.current(accountId), kind)
    const rows = (await (await openValues()).listAll(accountId, kind)).map((value) => toRow(value, declaring))
    if (options.json) return print(JSON.stringify(rows))
    if (rows.length === 0) return print(`No ${kind}s. Store one with \`${kind}s put NAME\`.`)
    const shown = rows.map(({ value, workflows, ...row }) => ({
      ...row,
      ...(kind === 'setting' && { value: JSON.stringify(value) }),
      workflows: workflows.join(',') || 'none',
    }))
    print(table(shown))
  })
}

function toRow({ name, version, updatedAt, updatedBy, value }: AccountValue, declaring: ReadonlyMap<string, string[]>) {
  const row = { name, version, updatedAt: new Date(updatedAt).toISOString(), updatedBy: updatedBy.name }
  return { ...row, ...(value !== undefined && { value }), workflows: declaring.get(name) ?? [] }
}

export async function deleteValue(kind: ValueKind, name: string, options: AccountOptions): Promise<void> {
  await withAdministration(async ({ accounts, openValues }) => {
    const accountId = await findAccountId(accounts, options)
    const isDeleted = await (await openValues()).delete(accountId, kind, name, operator)
    if (!isDeleted) throw new CommandError(`The account has no ${kind} ${name}. \`${kind}s list\` shows the names.`)
    print(`Deleted. Later attempts do not get ${name}.`)
  })
}
