/** What is wrong with scenarios, and where. */
import { type Document, isAlias, isMap, isNode, isScalar, isSeq, type LineCounter } from 'yaml'
import { type Path, toPointer } from '../openapi/json-pointer.ts'

export interface ScenarioProblem {
  path: Path
  /** Follows the path in a sentence, without a full stop. */
  detail: string
  /** Whether the path's last member itself is wrong, not its value. */
  isName?: boolean
}

export interface PlacedProblem {
  /** JSON Pointer. */
  pointer: string
  detail: string
  /** From 1; only of YAML. */
  line?: number
  column?: number
}

/** Scenarios were refused. The message is one sentence about the first problem, with its place. */
export class ScenariosInvalid extends Error {
  override name = 'ScenariosInvalid'
  readonly problems: readonly PlacedProblem[]

  /** @param source in front of the line and the column. */
  constructor(problems: readonly PlacedProblem[], source: string | undefined) {
    const [{ pointer, detail, line, column }] = problems as [PlacedProblem]
    const place = [source, line, column].filter((each) => each !== undefined).join(':')
    const sentence = `${pointer} ${detail}`.trim()
    super(`${place}${place && ': '}${sentence}${/[.?]$/.test(sentence) ? '' : '.'}`)
    this.problems = problems
  }
}

/** Finds places in a YAML document. */
export class YamlPlaces {
  readonly #document: Document.Parsed
  readonly #lines: LineCounter

  constructor(document: Document.Parsed, lines: LineCounter) {
    this.#document = document
    this.#lines = lines
  }

  place({ path, detail, isName = false }: ScenarioProblem): PlacedProblem {
    return { pointer: toPointer(path), detail, ...this.at(this.#offsetOf(path, isName)) }
  }

  at(offset: number): { line: number; column: number } {
    const { line, col } = this.#lines.linePos(offset)
    return { line, column: col }
  }

  /** Of what is at the path, or of the nearest object or array around it. */
  #offsetOf(path: Path, isName: boolean): number {
    let node: unknown = this.#document.contents
    let offset = startOf(node) ?? 0
    for (const [index, name] of path.entries()) {
      const parent = isAlias(node) ? node.resolve(this.#document) : node
      const [key, value] = findMember(parent, name) ?? []
      const isLast = index === path.length - 1
      // What follows is in another place, which an alias names.
      if (isAlias(node) || (key === undefined && value === undefined)) return offset
      offset = (isLast && isName ? startOf(key) : (startOf(value) ?? startOf(key))) ?? offset
      node = value
    }
    return offset
  }
}

function findMember(parent: unknown, name: string | number): [key: unknown, value: unknown] | undefined {
  if (isSeq(parent)) return [undefined, parent.items[Number(name)]]
  if (!isMap(parent)) return undefined
  const pair = parent.items.find(({ key }) => String(isScalar(key) ? key.value : key) === String(name))
  return pair && [pair.key, pair.value]
}

function startOf(node: unknown): number | undefined {
  return isNode(node) ? node.range?.[0] : undefined
}
