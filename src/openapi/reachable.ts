/** The places of a document that rule what callers send: parameters and bodies, and every component they refer to. */
import { pointerOf, type Step, walk } from './walk.ts'

export function reachable(document: object): Set<string> {
  const found = new Set<string>()
  const paths = (document as { paths: unknown }).paths
  for (const { value, path } of walk(paths, ['paths'])) {
    const [, , at, inOperation] = path
    const isRequest = at === 'parameters' || inOperation === 'parameters' || inOperation === 'requestBody'
    if (isRequest && !found.has(pointerOf(path))) mark(document, value, path, found)
  }
  return found
}

function mark(document: object, value: unknown, path: readonly Step[], found: Set<string>): void {
  for (const each of walk(value, path)) {
    const pointer = pointerOf(each.path)
    if (found.has(pointer)) continue
    found.add(pointer)
    const { $ref } = (each.value ?? {}) as { $ref?: unknown }
    if (typeof $ref !== 'string') continue
    const steps = $ref.split('/').slice(1)
    const target = steps.reduce<unknown>((at, step) => (at as Record<string, unknown>)[step], document)
    mark(document, target, steps, found)
  }
}
