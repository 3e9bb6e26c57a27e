/** Finds the operation of a method and a path. */
import type { Operation } from '../openapi/served-operations.ts'

export interface Match {
  /** The path's operations by method. */
  operations: Map<string, Operation>
  /** Path parameters as they stand in the URL, still percent-encoded. */
  values: string[]
}

interface Node {
  statics: Map<string, Node>
  parameter?: Node
  operations: Map<string, Operation>
}

const parameterSegment = /^\{[^{}]+\}$/

/**
 * Builds a tree with a node for each segment of a path, so that finding one costs as many steps as the path has
 * segments, however many operations there are. Paths match exactly: case and a trailing slash count, and a static
 * segment wins over a parameter (OpenAPI 3.1.1, section 4.8.8.2).
 */
export function buildLookup(operations: Operation[]): (path: string) => Match | undefined {
  const root = emptyNode()
  for (const operation of operations) {
    const node = operation.path.split('/').slice(1).reduce(child, root)
    const other = node.operations.get(operation.method)
    if (other) throw new Error(`${operation.id} and ${other.id} have the same method and path.`)
    node.operations.set(operation.method, operation)
  }
  return (path) => {
    const segments = path.split('/')
    const values: string[] = []
    return segments[0] === '' ? find(root, segments, 1, values) : undefined
  }
}

function emptyNode(): Node {
  return { statics: new Map(), operations: new Map() }
}

function child(node: Node, segment: string): Node {
  if (parameterSegment.test(segment)) {
    node.parameter ??= emptyNode()
    return node.parameter
  }
  if (segment.includes('{'))
    throw new Error(`The path segment ${segment} mixes text and parameter, which is not served.`)
  const next = node.statics.get(segment) ?? emptyNode()
  node.statics.set(segment, next)
  return next
}

function find(node: Node, segments: string[], index: number, values: string[]): Match | undefined {
  const segment = segments[index]
  if (segment === undefined) return node.operations.size > 0 ? { operations: node.operations, values } : undefined
  const next = node.statics.get(segment)
  const match = next && find(next, segments, index + 1, values)
  if (match || !node.parameter || segment === '') return match
  const before = values.length
  values.push(segment)
  const matched = find(node.parameter, segments, index + 1, values)
  if (!matched) values.length = before
  return matched
}
