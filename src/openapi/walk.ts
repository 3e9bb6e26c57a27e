/** Goes through a document, and names the places in it. */

export type Step = string | number

export function* walk(
  value: unknown,
  path: readonly Step[] = [],
): Generator<{ value: unknown; path: readonly Step[] }> {
  yield { value, path }
  if (typeof value !== 'object' || value === null) return
  for (const [key, each] of Object.entries(value)) yield* walk(each, [...path, key])
}

export function pointerOf(path: readonly Step[]): string {
  return path.map((step) => `/${String(step).replaceAll('~', '~0').replaceAll('/', '~1')}`).join('')
}

/** `openapi/execution.v1.yaml, listRuns: /paths/…`: the operation is named where the place is in one. */
export function placeOf(name: string, document: object, path: readonly Step[]): string {
  const [paths, route, method] = path
  const items = (document as { paths?: Record<string, Record<string, { operationId?: string }>> }).paths
  const id = paths === 'paths' ? items?.[String(route)]?.[String(method)]?.operationId : undefined
  return `openapi/${name}.yaml, ${id ? `${id}: ` : ''}${pointerOf(path)}`
}
