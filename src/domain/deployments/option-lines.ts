/** Finds the line of an option of `defineWorkflow` in the source of a workflow, for messages. */
import { readFileSync } from 'node:fs'
import { extname } from 'node:path'
import { parseAst } from 'rolldown/parseAst'

/** The parts of ESTree that are read here. */
interface Node {
  type: string
  start: number
  [member: string]: unknown
}

/**
 * @param option its path, such as `retry.maxAttempts`.
 * @returns `undefined` if the definition is not an object literal in the default export.
 */
export function findOptionLine(path: string, option: string): number | undefined {
  try {
    const text = readFileSync(path, 'utf8')
    const { body } = parseAst(text, { lang: extname(path).endsWith('ts') ? 'ts' : 'js' }) as unknown as { body: Node[] }
    const exported = body.find(({ type }) => type === 'ExportDefaultDeclaration')?.declaration as Node | undefined
    let node = unwrap(exported, body)
    for (const name of option.split('.')) {
      const properties: Node[] = node?.type === 'ObjectExpression' ? (node.properties as Node[]) : []
      const property = properties.find((each) => each.type === 'Property' && nameOf(each.key as Node) === name)
      if (!property) return undefined
      node = unwrap(property.value as Node, body, property.start)
    }
    return node && text.slice(0, node.start).split('\n').length
  } catch {
    return undefined
  }
}

/** Looks into calls, type assertions and variables. @param start that of the property, which the line is about. */
function unwrap(node: Node | undefined, body: readonly Node[], start?: number): Node | undefined {
  let inner = node
  for (;;) {
    if (inner?.type === 'CallExpression') inner = (inner.arguments as Node[])[0]
    else if (inner?.type === 'TSSatisfiesExpression' || inner?.type === 'TSAsExpression')
      inner = inner.expression as Node
    else if (inner?.type === 'Identifier') inner = findVariable(inner.name as string, body)
    else break
  }
  const found = inner ?? node
  return found && start !== undefined ? { ...found, start } : found
}

function findVariable(name: string, body: readonly Node[]): Node | undefined {
  const declarations = body.flatMap((each) =>
    each.type === 'VariableDeclaration' ? (each.declarations as Node[]) : [],
  )
  return declarations.find(({ id }) => (id as Node).name === name)?.init as Node | undefined
}

function nameOf(key: Node): unknown {
  return key.type === 'Identifier' ? key.name : key.value
}
