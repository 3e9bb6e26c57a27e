/**
 * What compiled schemas call while they check one value: they count their work, note secrets and files, and decide what Ajv
 * decides in other ways. Checks are synchronous, so that there is one for the thread.
 */
import { isMultipleOf } from '../../openapi/decimal.ts'
import { knownPatternLengthMax } from '../../openapi/known-patterns.ts'
import { canonicalJson } from '../canonical-json.ts'

/**
 * Units of work for one check. A unit is a keyword that is applied to a value, or a piece of text that is read, and takes
 * 10 to 20 ns. Variables of ordinary calls take less than a thousand.
 */
const workMin = 100_000
/** Large values may take more. Sparse objects by a schema of many members take 10 units for each byte. */
const workPerByte = 32
const workMax = 2_000_000

/** Characters that are read by one keyword within a unit of work. */
const charactersPerUnit = 16

/** Thrown within a check that has used up its work. */
class WorkExceeded extends Error {}

export interface FileVariable {
  /** A JSON Pointer in the variables. */
  pointer: string
  /** The id of the file, in lower case. */
  id: string
}

/** What a check has found besides errors. */
interface Found {
  /** Where values of `writeOnly` schemas are. */
  secretPointers: readonly string[]
  files: FileVariable[]
}

class SchemaRuntime {
  /** Counts down while a value is checked. */
  left = 0
  isFile: (text: string) => boolean = () => false
  readonly exceeded = new WorkExceeded()
  #secrets: Set<string> | undefined
  /** By pointer: several schemas may apply to one value. */
  #files: Map<string, string> | undefined

  secret(pointer: string): void {
    this.#secrets ??= new Set()
    this.#secrets.add(pointer)
  }

  file(pointer: string, value: unknown): void {
    if (typeof value !== 'string' || !this.isFile(value)) return
    this.#files ??= new Map()
    this.#files.set(pointer, value.toLowerCase())
  }

  /** The work of reading a text. */
  ofText(value: unknown): number {
    return typeof value === 'string' ? value.length / charactersPerUnit : 0
  }

  /** The work of matching a text with a pattern whose time grows with the third power of the length. */
  ofSlowText(value: unknown): number {
    if (typeof value !== 'string') return 0
    return value.length > knownPatternLengthMax ? Number.POSITIVE_INFINITY : value.length ** 3 / 10_000
  }

  ofItems(value: unknown): number {
    return Array.isArray(value) ? value.length : 0
  }

  /** The work of reading all names of an object once. */
  ofNames(value: unknown): number {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return 0
    let work = 0
    for (const name of Object.keys(value)) work += 1 + name.length / charactersPerUnit
    return work
  }

  /** The indexes of two equal items, if there are any. Ajv compares each pair of objects. */
  findEqual(items: readonly unknown[]): [number, number] | undefined {
    const seen = new Map<unknown, number>()
    const texts = new Map<string, number>()
    for (const [index, item] of items.entries()) {
      const isScalar = typeof item !== 'object' || item === null
      const key = isScalar ? item : canonicalJson(item)
      this.#use(typeof key === 'string' ? 1 + key.length / charactersPerUnit : 1)
      const known: Map<unknown, number> = isScalar ? seen : texts
      const earlier = known.get(key)
      if (earlier !== undefined) return [earlier, index]
      known.set(key, index)
    }
    return undefined
  }

  readonly isMultipleOf = isMultipleOf

  #use(work: number): void {
    this.left -= work
    if (this.left < 0) throw this.exceeded
  }

  /** Calls a check of the value. It is not complete if it takes too much work for the value's size. */
  run<Result>(value: unknown, isFile: (text: string) => boolean, check: () => Result): Checked<Result> {
    this.isFile = isFile
    const checked = this.#run(workMin, check)
    if (checked.isComplete) return checked
    const work = Math.min(JSON.stringify(value).length * workPerByte, workMax)
    return work > workMin ? this.#run(work, check) : checked
  }

  #run<Result>(work: number, check: () => Result): Checked<Result> {
    this.left = work
    this.#secrets = undefined
    this.#files = undefined
    try {
      return { isComplete: true, result: check(), found: this.#found }
    } catch (error) {
      if (error !== this.exceeded) throw error
      return { isComplete: false, found: this.#found }
    }
  }

  get #found(): Found {
    return {
      secretPointers: this.#secrets ? [...this.#secrets] : none,
      files: this.#files ? [...this.#files].map(([pointer, id]) => ({ pointer, id })) : noFiles,
    }
  }
}

type Checked<Result> = { found: Found } & ({ isComplete: true; result: Result } | { isComplete: false })

const none: readonly string[] = []
const noFiles: FileVariable[] = []

export const schemaRuntime = new SchemaRuntime()
