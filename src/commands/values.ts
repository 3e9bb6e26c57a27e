/** The commands `secrets` and `settings`. They work while the service runs. */
import { isUtf8 } from 'node:buffer'
import { buffer } from 'node:stream/consumers'
import { parseJson } from '../contract/i-json.ts'
import { invalidBody, Problem } from '../contract/problem.ts'
import type { ValueKind } from '../domain/account-values/account-values.sql.ts'
import { type AccountValue, valuesMax } from '../domain/account-values/account-values.ts'
import { findDeclaring } from '../domain/account-values/declared-values.ts'
import { operator } from '../domain/audit-log/audit-log.ts'
import { type AccountOptions, findAccountId, withAdministration } from './accounts.ts'
import { CommandError, print, table } from './output.ts'

/** Not by an argument, which other users of the machine see. */
export async function putValue(kind: ValueKind, name: string, options: AccountOptions): Promise<void> {
  const input = withoutLastBreak(await buffer(process.stdin))
  const value = explainRefusal(kind, name, () => (kind === 'secret' ? readText(input) : parseSetting(input)))
  await withAdministration(async ({ accounts, openValues }) => {
    const accountId = await findAccountId(accounts, options)
    const values = await openValues()
    const stored = await values.put(accountId, kind, name, value, operator).catch(refusal(kind, name))
    if (!stored) throw new CommandError(`The account has ${valuesMax} ${kind}s. Delete one first.`)
    print(`Stored version ${stored.version} of ${name}. Later attempts get it, and runs that waited for it start now.`)
  })
}

function withoutLastBreak(bytes: Buffer): Buffer {
  return bytes.at(-1) !== 0x0a ? bytes : bytes.subarray(0, bytes.at(-2) === 0x0d ? -2 : -1)
}

function readText(bytes: Buffer): string {
  if (isUtf8(bytes)) return bytes.toString('utf8')
  throw invalidBody('', 'must be UTF-8')
}

function parseSetting(bytes: Buffer): unknown {
  const value = parseJson(bytes)
  if (value === undefined) throw invalidBody('', 'is empty')
  return value
}

function explainRefusal<Value>(kind: ValueKind, name: string, read: () => Value): Value {
  try {
    return read()
  } catch (error) {
    return refusal(kind, name)(error)
  }
}

/** Turns what the API would answer with 400 into a sentence. */
function refusal(kind: ValueKind, name: string): (error: unknown) => never {
  return (error) => {
    const [first] = error instanceof Problem ? (error.problem.errors ?? []) : []
    if (!first || !('pointer' in first)) throw error
    if (first.pointer === '/name')
      throw new CommandError(`${name} is no name of a ${kind}: use 1 to 64 capital letters, digits and underscores.`)
    const place = first.pointer.replace(/^\/value/, '')
    const hint = kind === 'setting' ? ' A text needs quotes: echo \'"text"\' | … settings put NAME' : ''
    throw new CommandError(`The ${kind} ${place === '' ? '' : `at ${place} `}${first.detail}.${hint}`)
  }
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
