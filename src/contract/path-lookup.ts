/** Finds the operations of a path. */
import type { Operation } from '../openapi/served-operations.ts'

export interface PathMatch {
  operations: Map<string, Operation>
  /** Path parameters in their order, still percent-encoded. */
  values: string[]
}

interface Node {
  statics: Map<string, Node>
  parameter?: Node
  operations: Map<string, Operation>
}

const parameterSegment = /^\{[^{}]+\}$/

/**
 * Builds a tree with a node for each path segment, so a lookup takes as many steps as the path has segments, however
 * many operations there are. Paths match exactly: case and a trailing slash count, and a static segment wins over a
 * parameter (OpenAPI 3.1.1, section 4.8.8.2).
 */
export function createPathLookup(operations: Operation[]): (path: string) => PathMatch | undefined {
  const root = createNode()
  for (const operation of operations) {
    const node = operation.path.split('/').slice(1).reduce(addChild, root)
    const other = node.operations.get(operation.method)
    if (other) throw new Error(`${operation.id} and ${other.id} have the same method and path.`)
    node.operations.set(operation.method, operation)
    // RFC 9110, section 9.1: a server must support both.
    if (operation.method === 'GET') node.operations.set('HEAD', operation)
  }
  return (path) => {
    const segments = path.split('/')
    return segments[0] === '' ? find(root, segments, 1, []) : undefined
  }
}

function createNode(): Node {
  return { statics: new Map(), operations: new Map() }
}

function addChild(node: Node, segment: string): Node {
  if (parameterSegment.test(segment)) {
    node.parameter ??= createNode()
    return node.parameter
  }
  if (segment.includes('{'))
    throw new Error(`The path segment ${segment} mixes text and parameter, which is not served.`)
  const next = node.statics.get(segment) ?? createNode()
  node.statics.set(segment, next)
  return next
}

function find(node: Node, segments: string[], index: number, values: string[]): PathMatch | undefined {
  const segment = segments[index]
  if (segment === undefined) return node.operations.size > 0 ? { operations: node.operations, values } : undefined
  const next = node.statics.get(segment)
  const match = next && find(next, segments, index + 1, values)
  if (match || !node.parameter || segment === '') return match
  return find(node.parameter, segments, index + 1, [...values, segment])
}
