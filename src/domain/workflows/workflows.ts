/** The workflows of the installation, and the validation of their variables and outputs. */

import { setImmediate as nextTick } from 'node:timers/promises'
import type { ErrorObject } from 'ajv'
import { errorsMax } from '../../contract/problem.ts'
import { walk } from '../../openapi/document.ts'
import {
  type CompiledSchema,
  describeVariableError,
  fileFormat,
  InvalidSchema,
  type VariableError,
} from './compile-schema.ts'
import { compileLarge, findCompiled } from './compiled-schemas.ts'
import { type FileVariable, schemaRuntime } from './schema-runtime.ts'
import { extractSecrets, findMasked, isShownAt, restoreSecrets, type Secrets } from './secrets.ts'
import {
  type JsonSchema,
  type SchemaMember,
  schemaMembers,
  schemaOf,
  type Workflow,
  WorkflowSchemaError,
} from './workflow.ts'

export { fileFormat, type VariableError } from './compile-schema.ts'
export type { FileVariable } from './schema-runtime.ts'

type CheckedVariables =
  | { errors: VariableError[] }
  /** Variables with defaults filled in and secrets masked, the secrets, and the files if there are any. */
  | { masked: Record<string, unknown>; secrets: Secrets; files?: FileVariable[] }

/** What the value of a variable with the format of files must be. */
interface FileRule {
  isFile(text: string): boolean
  /** The detail of the error for other values. */
  detail: string
}

const uuidPattern = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i

const idsOfFiles: FileRule = {
  isFile: (text) => uuidPattern.test(text),
  detail: 'must be the id of a file, which createFile returns',
}

/** Files in the variables of one run. */
const filesMax = 100
/** Secrets in the variables of one run, or in one answer: workers get a pointer to each. */
const secretsMax = 20_000

/** The detail of the error for a mask that no earlier secret replaces. */
export const maskedSecretDetail = 'is the mask of a secret, not its value'

export class Workflows {
  /** Sorted by ID. */
  readonly #checks: ReadonlyMap<string, WorkflowChecks>
  readonly #fileRule: FileRule
  /** By the others. The same list is returned again, since representations are kept by list. */
  readonly #unions = new WeakMap<Workflows, Workflows>()

  /**
   * The schemas are compiled at their first use, unless `compileLarge` has compiled them.
   *
   * @param deploymentId `null` for workflows that are not in the store.
   * @param fileRule what a variable with the format of files must be.
   */
  constructor(
    workflows: readonly Workflow[] | ReadonlyMap<string, WorkflowChecks>,
    deploymentId: string | null = null,
    fileRule: FileRule = idsOfFiles,
  ) {
    this.#fileRule = fileRule
    const entries = Array.isArray(workflows)
      ? workflows.map((workflow): [string, WorkflowChecks] => [workflow.id, new WorkflowChecks(workflow, deploymentId)])
      : [...(workflows as ReadonlyMap<string, WorkflowChecks>)]
    this.#checks = new Map(entries.sort(([a], [b]) => (a < b ? -1 : 1)))
  }

  /** These workflows and others, which win over those of the same ID. */
  with(others: Workflows): Workflows {
    const union = this.#unions.get(others) ?? new Workflows(new Map([...this.#checks, ...others.#checks]))
    this.#unions.set(others, union)
    return union
  }

  /** Compiles what is not yet compiled, with pauses, so that the first requests find it. */
  async warm(): Promise<void> {
    for (const checks of this.#checks.values()) {
      await checks.compiling
      if (checks.isCompiled) continue
      checks.compile()
      await nextTick()
    }
  }

  /** Compiles large schemas in a thread: at their first use, they would stop this one. */
  async compileLarge(accountId: string | null): Promise<this> {
    const all = this.list().flatMap((workflow) => schemaMembers(workflow).map((member) => schemaOf(workflow, member)))
    const compiling = compileLarge(all, accountId)
    for (const checks of this.#checks.values()) checks.compiling = compiling
    await compiling
    for (const checks of this.#checks.values()) checks.compiling = undefined
    return this
  }

  /** Resolves when the large schemas of the workflow are compiled; `undefined` if nothing is being compiled. */
  compiling(id: string): Promise<void> | undefined {
    return this.#checks.get(id)?.compiling
  }

  /** @throws {WorkflowError} if a schema is invalid. */
  compile(): this {
    for (const checks of this.#checks.values()) checks.compile()
    return this
  }

  /** Sorted by ID. */
  list(): Workflow[] {
    return [...this.#checks.values()].map(({ workflow }) => workflow)
  }

  get(id: string): Workflow | undefined {
    return this.#checks.get(id)?.workflow
  }

  /** The deployment that the workflow belongs to. */
  deploymentOf(id: string): string | null {
    return this.#checks.get(id)?.deploymentId ?? null
  }

  /**
   * Validates the variables for a run, and fills defaults into `variables`. Masks are replaced by the secrets in
   * `earlier`; a mask without an earlier secret is an error, because it was copied from a response.
   */
  checkVariables(id: string, variables: Record<string, unknown>, earlier: Secrets = {}): CheckedVariables {
    const { value, restored } = restoreSecrets(variables, earlier)
    const { errors, secretPointers, files } = this.#check(id, 'variables', value)
    const masks = findMasked(value, secretPointers)
    if (errors.length === 0 && files.length > filesMax)
      return { errors: [{ pointer: '', detail: `names more than ${filesMax} files` }] }
    if (errors.length === 0) {
      const ofFiles = files.length > 0 && { files }
      if (secretPointers.length === 0 && restored.length === 0) return { masked: value, secrets: {}, ...ofFiles }
      const extracted = { ...extractSecrets(value, secretPointers), ...ofFiles }
      // If the schema no longer marks an earlier secret as one, it would be shown.
      masks.push(...restored.filter((pointer) => isShownAt(extracted.masked, pointer)))
      if (masks.length === 0) return extracted
    }
    // The error for a restored secret must not reveal parts of it.
    masks.push(...restored.filter((pointer) => errors.some((error) => isWithin(error.pointer, pointer))))
    const others = errors.filter((error) => !masks.some((pointer) => isWithin(error.pointer, pointer)))
    const maskErrors = masks.map((pointer) => ({ pointer, detail: maskedSecretDetail }))
    return { errors: [...maskErrors, ...others].slice(0, errorsMax) }
  }

  /** Whether the variables of the workflow may name files. */
  takesFiles(id: string): boolean {
    return this.#checks.get(id)?.takesFiles ?? false
  }

  /** The files in valid variables, which contain the values of secrets. */
  filesIn(id: string, variables: Record<string, unknown>): FileVariable[] {
    if (!this.takesFiles(id)) return []
    return this.#check(id, 'variables', structuredClone(variables)).files
  }

  /** Validates an output, and masks its secrets. */
  checkOutput(id: string, output: unknown): { errors: VariableError[] } | { masked: unknown } {
    const { errors, secretPointers } = this.#check(id, 'output', output)
    if (errors.length > 0) return { errors }
    if (secretPointers.length === 0) return { masked: output }
    const pointers = secretPointers.map((pointer) => `/output${pointer}`)
    return { masked: extractSecrets({ output }, pointers).masked.output }
  }

  /**
   * Validates an answer that runs of the workflow may wait for, and fills its defaults in. `undefined` if the workflow
   * declares no wait of the name.
   *
   * @returns the answer as the run gets it, with its secrets masked, and the secrets.
   */
  checkAnswer(
    id: string,
    name: string,
    value: unknown,
  ): { errors: VariableError[] } | { value: unknown; masked: unknown; secrets: Secrets } | undefined {
    if (!Object.hasOwn(this.get(id)?.waits ?? {}, name)) return undefined
    const { errors, secretPointers } = this.#check(id, `waits.${name}`, value)
    if (errors.length > 0) return { errors }
    const pointers = secretPointers.map((pointer) => `/value${pointer}`)
    const copied = findMasked({ value }, pointers)
    if (copied.length > 0)
      return {
        errors: copied.map((pointer) => ({ pointer: pointer.slice('/value'.length), detail: maskedSecretDetail })),
      }
    const { masked, secrets } = extractSecrets({ value }, pointers)
    return { value, masked: masked.value, secrets }
  }

  /** What is wrong with the value of a setting that the workflow declares. Fills its defaults in. */
  checkSetting(id: string, name: string, value: unknown): VariableError[] {
    return this.#check(id, `settings.${name}`, value).errors
  }

  /** The secrets in what a run has got from a wait; none unless it is an answer to a wait that the workflow declares. */
  secretsOfOutcome(id: string, name: string, outcome: string): unknown[] {
    if (!Object.hasOwn(this.get(id)?.waits ?? {}, name)) return []
    const { ok, value } = Object(JSON.parse(outcome))
    const checked = ok === true ? this.checkAnswer(id, name, value) : undefined
    return checked && 'secrets' in checked ? Object.values(checked.secrets) : []
  }

  #check(id: string, member: SchemaMember, value: unknown): Checked {
    const checks = this.#checks.get(id)
    if (!checks) throw new Error(`There is no workflow "${id}".`)
    return checks.check(member, value, this.#fileRule)
  }
}

/** Whether `pointer` equals `other` or leads further into it. */
function isWithin(pointer: string, other: string): boolean {
  return `${pointer}/`.startsWith(`${other}/`)
}

interface Checked {
  errors: VariableError[]
  /** Where values of `writeOnly` schemas are. */
  secretPointers: readonly string[]
  files: FileVariable[]
}

class WorkflowChecks {
  readonly workflow: Workflow
  /** `null` for workflows that no deployment has, in tests. */
  readonly deploymentId: string | null
  /** Set while a thread compiles large schemas. */
  compiling: Promise<void> | undefined
  readonly #compiled = new Map<SchemaMember, CompiledSchema>()
  #takesFiles: boolean | undefined

  constructor(workflow: Workflow, deploymentId: string | null) {
    this.workflow = workflow
    this.deploymentId = deploymentId
  }

  get isCompiled(): boolean {
    return this.#compiled.size === schemaMembers(this.workflow).length
  }

  /** Whether its variables may name files. */
  get takesFiles(): boolean {
    this.#takesFiles ??= takesFiles(this.workflow.variables)
    return this.#takesFiles
  }

  /** @throws {WorkflowError} if a schema is invalid. */
  compile(): void {
    for (const member of schemaMembers(this.workflow)) this.#compiledOf(member)
  }

  check(member: SchemaMember, value: unknown, { isFile, detail }: FileRule): Checked {
    const { first, all } = this.#compiledOf(member)
    const checked = schemaRuntime.run(value, isFile, () => first(value))
    if (checked.isComplete && checked.result) {
      const isTooMany = checked.found.secretPointers.length > secretsMax
      return { errors: isTooMany ? [tooManySecrets] : [], ...checked.found }
    }
    if (!checked.isComplete) return { errors: [tooMuchWork], ...checked.found }
    const isSmall = JSON.stringify(value).length <= allErrorsLengthMax
    const again = isSmall ? schemaRuntime.run(value, isFile, () => all(value)) : undefined
    const [{ errors }, found] = again?.isComplete ? [all, again.found] : [first, checked.found]
    const described = (errors ?? [])
      .slice(0, errorsMax)
      .map((error: ErrorObject) => describeVariableError(error, detail))
    return { errors: described, ...found }
  }

  #compiledOf(member: SchemaMember): CompiledSchema {
    const compiled = this.#compiled.get(member) ?? compile(this.workflow, member)
    this.#compiled.set(member, compiled)
    return compiled
  }
}

/** Of larger values only the first error is reported: a body of 1 MiB can have millions, which exhausted the memory. */
const allErrorsLengthMax = 16 * 1024

const tooManySecrets: VariableError = { pointer: '', detail: `has more than ${secretsMax} secret values` }
const tooMuchWork: VariableError = {
  pointer: '',
  detail: 'takes too much work to check against the schema: send fewer values, or levels, in one request',
}

function takesFiles(schema: JsonSchema): boolean {
  for (const { value } of walk(schema)) if (Object(value).format === fileFormat) return true
  return false
}

function compile(workflow: Workflow, member: SchemaMember): CompiledSchema {
  const schema = schemaOf(workflow, member)
  const refusal = (pointer: string, reason: string) => {
    const place = `The ${member} schema of workflow "${workflow.id}" is invalid`
    return new WorkflowSchemaError(workflow, member, pointer, `${place}: ${pointer || '/'} ${reason}.`)
  }
  try {
    const compiled = findCompiled(schema)
    if (member === 'variables' || !takesFiles(schema)) return compiled
  } catch (error) {
    throw error instanceof InvalidSchema ? refusal(error.pointer, error.message) : error
  }
  throw refusal('', 'has the format "file", which only variables may have')
}
