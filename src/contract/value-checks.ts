/**
 * Validates what the domain stores, by the schemas of the documents: whatever door a value came through, the API returns it.
 * `npm run generate` compiles the schemas that are named here.
 */
import { createRequire } from 'node:module'
import { type Check, type Link, linkChecks, type Mismatch, unknownMember } from './compiled-checks.ts'
import { findJsonError } from './i-json.ts'
import { invalidRequest, Problem } from './problem.ts'

/** By document. */
export const checkedSchemas = {
  'execution.v1': [
    'BatchEntry',
    'CreateNotificationRuleRequest',
    'NotificationRule',
    'PutSecretRequest',
    'PutSettingRequest',
    'RunFilters',
    'Setting',
    'StoredFile',
    'UpdateScheduleRequest',
    'UpdateWebhookEndpointRequest',
    'Wait',
  ],
  'browser-context.alpha': ['CreateBrowserContextRequest', 'SetSignInRequest', 'StorageState'],
} as const

type CheckedSchema = (typeof checkedSchemas)[keyof typeof checkedSchemas][number]

const require = createRequire(import.meta.url)
let known: Map<string, Check> | undefined

/** What a generated file exports. */
interface CompiledValueChecks {
  link: Link
  /** What the document says in place of a pattern, by Ajv's message about it. */
  details: Readonly<Record<string, string>>
}

/** The checks by schema, or schema and member. Loads them once, for which a first request would wait 65 ms. */
export function loadValueChecks(): ReadonlyMap<string, Check> {
  known ??= new Map(
    Object.keys(checkedSchemas).flatMap((document) => {
      const { link, details }: CompiledValueChecks = require(`../../generated/${document}/value-checks.cjs`)
      return [...linkChecks(link, details)]
    }),
  )
  return known
}

/**
 * The errors of the members that are given, each by the schema of the member. Members that are `undefined` are absent. A
 * value of a schema that allows any member is checked as a whole.
 *
 * @param value the same value as in a request, or some of its members.
 */
export function findValueErrors(schema: CheckedSchema, value: object): Mismatch[] {
  const checks = loadValueChecks()
  const checkWhole = checks.get(schema)
  if (checkWhole) return [checkWhole(value) ?? []].flat()
  const errors = Object.entries(value).flatMap(([member, given]) => {
    if (given === undefined) return []
    const check = checks.get(`${schema}.${member}`)
    const error = check ? check(given) : { pointer: '', detail: unknownMember }
    return error ? [{ pointer: `/${member}${error.pointer}`, detail: error.detail }] : []
  })
  const notJson = errors.length === 0 ? findJsonError(value) : undefined
  return notJson ? [notJson] : errors
}

/** @throws {Problem} 400 with the errors of `findValueErrors`. */
export function requireValid(schema: CheckedSchema, value: object): void {
  const errors = findValueErrors(schema, value)
  if (errors.length > 0) throw new Problem(invalidRequest(errors).problem)
}
