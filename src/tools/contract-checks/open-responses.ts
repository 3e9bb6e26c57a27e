/** Checks that no schema of a response forbids unknown members: a later version may add some. */
import { describePlace, responsePointers, walk } from '../../openapi/document.ts'
import { type Path, toPointer } from '../../openapi/json-pointer.ts'
import type { CheckedContract, Finding } from './checked-contract.ts'

export function checkOpenResponses(contracts: readonly Pick<CheckedContract, 'name' | 'current'>[]): Finding[] {
  return contracts.flatMap(({ name, current }) => {
    const responses = responsePointers(current)
    const isSchema = (path: Path) => !path.includes('example') && !path.includes('examples')
    const closed = [...walk(current)].filter(
      ({ value, path }) => isClosed(value) && isSchema(path) && responses.has(toPointer(path)),
    )
    return closed.map(({ path }) => ({
      severity: 'error' as const,
      message: 'A schema of a response forbids unknown members.',
      location: describePlace(name, current, path),
      reason: 'Clients that validate by the document would refuse the members that a later version adds.',
      fix: 'Remove `additionalProperties: false`, `unevaluatedProperties: false` or `maxProperties`; the service itself sends only documented members.',
    }))
  })
}

function isClosed(schema: unknown): boolean {
  const { properties, additionalProperties, unevaluatedProperties, maxProperties } = Object(schema) as Record<
    string,
    unknown
  >
  if (additionalProperties === false || unevaluatedProperties === false) return true
  return properties !== undefined && maxProperties !== undefined
}
