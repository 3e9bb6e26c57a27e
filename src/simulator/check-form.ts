/** Checks values by a JSON Schema, and describes what does not fit in sentences. */
import type { ErrorObject } from 'ajv'
import { Ajv2020 } from 'ajv/dist/2020.js'
import addFormats from 'ajv-formats'
import type { JsonSchema } from '../domain/workflows/workflow.ts'
import { type Path, parsePointer } from '../openapi/json-pointer.ts'
import { suggest } from './closest-name.ts'
import type { ScenarioProblem } from './scenario-errors.ts'

/** Returns a function that lists what is wrong with a value. */
export function compileForm(schema: JsonSchema): (value: unknown) => ScenarioProblem[] {
  const ajv = new Ajv2020({ allErrors: true, verbose: true, strictTypes: false, ownProperties: true })
  const validate = addFormats.default(ajv).compile(schema)
  return (value) => (validate(value) ? [] : (validate.errors ?? []).map(toProblem))
}

function toProblem({ instancePath, keyword, params, parentSchema, data, message }: ErrorObject): ScenarioProblem {
  const path = parsePointer(instancePath)
  switch (keyword) {
    case 'additionalProperties':
      return unknownMember(path, params.additionalProperty, Object.keys(parentSchema?.properties ?? {}))
    case 'required':
      return { path, detail: `lacks the member "${params.missingProperty}"` }
    case 'type':
      return wrongValue(path, `must be ${[params.type].flat().map(withArticle).join(' or ')}`, data)
    case 'enum':
      return wrongName(path, data, params.allowedValues)
    case 'minProperties':
    case 'maxProperties':
      return { path, detail: countOfMembers(path, Object.keys(parentSchema?.properties ?? {}), Object(data)) }
    default:
      return wrongValue(path, message ?? 'is invalid', data)
  }
}

function unknownMember(path: Path, name: string, members: readonly string[]): ScenarioProblem {
  return { path: [...path, name], isName: true, detail: `is not a known member: ${suggest(name, members, 'members')}` }
}

function wrongName(path: Path, value: unknown, values: readonly unknown[]): ScenarioProblem {
  const names = values.filter((each) => typeof each === 'string')
  const others = `the values are ${values.map((each) => JSON.stringify(each)).join(', ')}`
  const suggestion = names.length === values.length ? suggest(String(value), names, 'values') : others
  return { path, detail: `cannot be ${show(value)}: ${suggestion}` }
}

function wrongValue(path: Path, rule: string, value: unknown): ScenarioProblem {
  return { path, detail: `${rule}, and not ${show(value)}` }
}

function countOfMembers(path: Path, members: readonly string[], value: object): string {
  if (path.at(-1) === 'sleep') return 'must have a name, and either "seconds" or "until"'
  const names = Object.keys(value).map((name) => `"${name}"`)
  const found = names.length === 0 ? 'none' : names.join(' and ')
  return `must have exactly one of ${members.map((name) => `"${name}"`).join(', ')}, and has ${found}`
}

function withArticle(type: string): string {
  return type === 'null' ? 'null' : `${/^[aio]/.test(type) ? 'an' : 'a'} ${type}`
}

const shownMax = 60

function show(value: unknown): string {
  if (value === undefined) return 'nothing'
  if (Array.isArray(value)) return 'an array'
  if (typeof value === 'object' && value !== null) return 'an object'
  const json = JSON.stringify(value)
  return json.length > shownMax ? `${json.slice(0, shownMax)}…` : json
}
