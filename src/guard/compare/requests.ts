/** Compares what an operation takes: parameters, the body, and the scopes that its key needs. */
import { bodyBytesMax } from '../../contract/body.ts'
import type { OperationOfPath } from '../../generate/document.ts'
import { compareContent } from './answers.ts'
import { below, type Comparison, compareWords, type Node, note, type Place, resolve, same, why } from './change.ts'
import { compareSchemas } from './schemas.ts'

type Requirements = Record<string, string[]>[]

export function compareSecurity(comparison: Comparison, place: Place, before: Requirements, after: Requirements): void {
  const at = below(place, place.subject, 'security')
  for (const requirement of before) {
    if (after.some((it) => satisfies(requirement, it))) continue
    const missing = after[0] ? scopesBeyond(after[0], requirement) : []
    const what = missing.length
      ? `needs the scope ${missing.map((scope) => `\`${scope}\``).join(', ')} too`
      : `does not take \`${Object.keys(requirement).join('` with `')}\` any more`
    note(comparison, at, 'breaking', what, missing.length ? why.forbidden : why.refused)
  }
  for (const requirement of after) {
    if (before.some((it) => satisfies(requirement, it))) continue
    const spared = before.flatMap((it) => scopesBeyond(it, requirement))
    const without = spared.map((scope) => `\`${scope}\``).join(', ')
    const known = Object.keys(requirement)
      .map((name) => `\`${name}\``)
      .join(' with ')
    note(
      comparison,
      at,
      'added',
      spared.length ? `may be called without the scope ${without}` : `takes ${known || 'calls without a key'}`,
    )
  }
}

/** Whether whoever meets `offered` also meets `asked`. */
function satisfies(offered: Requirements[number], asked: Requirements[number]): boolean {
  return Object.entries(asked).every(
    ([scheme, scopes]) => scopes.every((it) => offered[scheme]?.includes(it)) && scheme in offered,
  )
}

function scopesBeyond(one: Requirements[number], other: Requirements[number]): string[] {
  return Object.entries(one).flatMap(([scheme, scopes]) =>
    scopes.filter((it) => scheme in other && !other[scheme]?.includes(it)),
  )
}

type Parameter = OperationOfPath['parameters'][number] & Node

export function compareParameters(
  comparison: Comparison,
  place: Place,
  one: OperationOfPath,
  other: OperationOfPath,
): void {
  const gone = new Set(one.parameters as Parameter[])
  for (const is of other.parameters as Parameter[]) {
    const was = [...gone].find((it) => counterpart(it, is, one.path, other.path))
    if (was) gone.delete(was)
    const at = below(place, `${kindOf(is)} \`${is.name}\` of {operation}`, 'parameters', is.name)
    if (was) compareParameter(comparison, at, was, is)
    else if (is.required)
      note(comparison, place, 'breaking', `requires the new ${kindOf(is)} \`${is.name}\``, why.refused)
    else note(comparison, place, 'added', `takes the new ${kindOf(is)} \`${is.name}\``)
  }
  for (const { in: where, name } of gone) {
    const reason = where === 'header' ? why.defaulted.replace('leaves it out', 'sends it') : why.refused
    note(comparison, place, 'breaking', `does not take the ${kindOf({ in: where })} \`${name}\` any more`, reason)
  }
}

function kindOf({ in: where }: Pick<Parameter, 'in'>): string {
  return where === 'header' ? 'header' : `${where} parameter`
}

/** Headers are the same in any case; a path parameter is what stands at its place in the path. */
function counterpart(was: Parameter, is: Parameter, pathBefore: string, pathAfter: string): boolean {
  if (was.in !== is.in) return false
  if (is.in === 'path') return placeInPath(was.name, pathBefore) === placeInPath(is.name, pathAfter)
  return is.in === 'header' ? was.name.toLowerCase() === is.name.toLowerCase() : was.name === is.name
}

function placeInPath(name: string, path: string): number {
  return path.split('/').findIndex((segment) => segment.includes(`{${name}}`))
}

function compareParameter(comparison: Comparison, place: Place, was: Parameter, is: Parameter): void {
  if (was.name !== is.name) note(comparison, place, 'breaking', `was called \`${was.name}\``, why.renamed)
  if (!was.required && is.required) note(comparison, place, 'breaking', 'is required', why.refused)
  if (was.required && !is.required) note(comparison, place, 'added', 'may be left out')
  for (const keyword of ['style', 'explode', 'allowReserved', 'content']) {
    if (!same(was[keyword], is[keyword])) note(comparison, place, 'breaking', `has another \`${keyword}\``, why.refused)
  }
  compareWords(comparison, place, was, is)
  compareSchemas(comparison, below(place, place.subject, 'schema'), 'request', was.schema, is.schema)
}

export function compareBodies(comparison: Comparison, place: Place, before: unknown, after: unknown): void {
  if (!before && !after) return
  const at = below(place, 'the body of {operation}', 'requestBody')
  const [was, is] = [resolve(comparison.before, before).node, resolve(comparison.after, after).node]
  if (!after) return note(comparison, at, 'breaking', 'is refused', why.refused)
  if (!before && is.required) return note(comparison, place, 'breaking', 'requires a body', why.refused)
  if (!before) return note(comparison, place, 'added', 'takes a body')
  if (!was.required && is.required) note(comparison, at, 'breaking', 'is required', why.refused)
  if (was.required && !is.required) note(comparison, at, 'added', 'may be left out')
  const [least, most] = [was, is].map((body) => Number(body['x-body-bytes-max'] ?? bodyBytesMax)) as [number, number]
  const smaller = most < least
  const size = `may have ${most} bytes instead of ${least}`
  if (most !== least) note(comparison, at, smaller ? 'breaking' : 'added', size, smaller ? why.refused : why.nobody)
  compareWords(comparison, at, was, is)
  compareContent(comparison, at, 'request', (was.content ?? {}) as Node, (is.content ?? {}) as Node)
}
