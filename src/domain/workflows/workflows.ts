/** The workflows of the installation, and the validation of their variables and outputs. */

import { setImmediate as nextTick } from 'node:timers/promises'
import type { ErrorObject, ValidateFunction } from 'ajv'
import { Ajv2020 } from 'ajv/dist/2020.js'
import addFormats from 'ajv-formats'
import { errorsMax } from '../../contract/problem.ts'
import { walk } from '../../openapi/document.ts'
import { toPointer } from '../../openapi/json-pointer.ts'
import { extractSecrets, findMasked, isShownAt, restoreSecrets, type Secrets } from './secrets.ts'
import {
  type JsonSchema,
  type SchemaMember,
  schemaMembers,
  schemaOf,
  type Workflow,
  WorkflowSchemaError,
} from './workflow.ts'

/** A value that does not match its schema: a JSON Pointer (RFC 6901) and the reason. */
export interface VariableError {
  pointer: string
  detail: string
}

type CheckedVariables =
  | { errors: VariableError[] }
  /** Variables with defaults filled in and secrets masked, the secrets, and the files if there are any. */
  | { masked: Record<string, unknown>; secrets: Secrets; files?: FileVariable[] }

/** A variable with `format: file`. */
export interface FileVariable {
  /** A JSON Pointer in the variables. */
  pointer: string
  /** The id of the file, in lower case. */
  id: string
}

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

/** The detail of the error for a mask that no earlier secret replaces. */
export const maskedSecretDetail = 'is the mask of a secret, not its value'

export class Workflows {
  /** Sorted by ID. */
  readonly #checks: ReadonlyMap<string, WorkflowChecks>
  readonly #fileRule: FileRule
  /** By the others. The same list is returned again, since representations are kept by list. */
  readonly #unions = new WeakMap<Workflows, Workflows>()

  /**
   * The schemas are compiled at their first use.
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
    const compiler = new SchemaCompiler(fileRule)
    const entries = Array.isArray(workflows)
      ? workflows.map((workflow): [string, WorkflowChecks] => [
          workflow.id,
          new WorkflowChecks(workflow, deploymentId, compiler),
        ])
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
      if (checks.isCompiled) continue
      checks.compile()
      await nextTick()
    }
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

  #check(id: string, member: SchemaMember, value: unknown): Checked<VariableError> {
    const checks = this.#checks.get(id)
    if (!checks) throw new Error(`There is no workflow "${id}".`)
    const { errors, ...found } = checks.check(member, value)
    return { errors: errors.slice(0, errorsMax).map((error) => toVariableError(error, this.#fileRule)), ...found }
  }
}

function toVariableError({ instancePath, message, params }: ErrorObject, fileRule = idsOfFiles): VariableError {
  const { missingProperty, additionalProperty, unevaluatedProperty, allowedValues, format } = params
  const unknown = additionalProperty ?? unevaluatedProperty
  if (missingProperty !== undefined)
    return { pointer: instancePath + toPointer([missingProperty]), detail: 'is required' }
  if (unknown !== undefined) return { pointer: instancePath + toPointer([unknown]), detail: 'is not in the schema' }
  if (format === fileFormat) return { pointer: instancePath, detail: fileRule.detail }
  const values = allowedValues ? `: ${allowedValues.map((value: unknown) => JSON.stringify(value)).join(', ')}` : ''
  return { pointer: instancePath, detail: `${message ?? 'is invalid'}${values}` }
}

/** Whether `pointer` equals `other` or leads further into it. */
function isWithin(pointer: string, other: string): boolean {
  return `${pointer}/`.startsWith(`${other}/`)
}

// Compiles the schemas of workflows into checks, at their first use.

/** Returns whether the value is valid, and adds to `errors` if it is not. */
type Check = (value: unknown, errors: ErrorObject[]) => boolean

interface Checked<ValidationError> {
  errors: ValidationError[]
  secretPointers: string[]
  files: FileVariable[]
}

/** The schemas of one list of workflows, which may refer to each other by `$id`. */
class SchemaCompiler {
  readonly #fileRule: FileRule
  #ajv: { first: Ajv2020; all: Ajv2020 } | undefined
  /** Where the last check found values of `writeOnly` schemas. */
  #secretPointers: string[] = []
  /** By pointer: several schemas may apply to one value. */
  readonly #files = new Map<string, FileVariable>()

  constructor(fileRule: FileRule) {
    this.#fileRule = fileRule
  }

  /** @throws {WorkflowError} if the schema is invalid. */
  compile(workflow: Workflow, member: SchemaMember): Check {
    const notes = {
      secret: (pointer: string) => void this.#secretPointers.push(pointer),
      file: (pointer: string, id: string) => void this.#files.set(pointer, { pointer, id: id.toLowerCase() }),
    }
    this.#ajv ??= {
      first: createAjv(notes, this.#fileRule, { allErrors: false }),
      all: createAjv(notes, this.#fileRule, { allErrors: true }),
    }
    return createCheck(compile(this.#ajv.first, workflow, member), compile(this.#ajv.all, workflow, member))
  }

  /** @param check of this compiler. */
  run(check: Check, value: unknown): Checked<ErrorObject> {
    this.#secretPointers = []
    this.#files.clear()
    const errors: ErrorObject[] = []
    check(value, errors)
    return {
      errors,
      secretPointers: this.#secretPointers,
      files: this.#files.size === 0 ? none : [...this.#files.values()],
    }
  }
}

const none: FileVariable[] = []

class WorkflowChecks {
  readonly workflow: Workflow
  /** `null` for workflows that no deployment has, in tests. */
  readonly deploymentId: string | null
  readonly #compiler: SchemaCompiler
  readonly #checks = new Map<SchemaMember, Check>()
  #takesFiles: boolean | undefined

  constructor(workflow: Workflow, deploymentId: string | null, compiler: SchemaCompiler) {
    this.workflow = workflow
    this.deploymentId = deploymentId
    this.#compiler = compiler
  }

  get isCompiled(): boolean {
    return this.#checks.size === schemaMembers(this.workflow).length
  }

  /** Whether its variables may name files. */
  get takesFiles(): boolean {
    this.#takesFiles ??= takesFiles(this.workflow.variables)
    return this.#takesFiles
  }

  /** @throws {WorkflowError} if a schema is invalid. */
  compile(): void {
    for (const member of schemaMembers(this.workflow)) this.#checkOf(member)
  }

  check(member: SchemaMember, value: unknown): Checked<ErrorObject> {
    return this.#compiler.run(this.#checkOf(member), value)
  }

  #checkOf(member: SchemaMember): Check {
    const check = this.#checks.get(member) ?? this.#compiler.compile(this.workflow, member)
    this.#checks.set(member, check)
    return check
  }
}

let schemaValidator: Ajv2020 | undefined

/** One for all lists: compiling JSON Schema's own schema takes 40 ms. */
function findInvalid(schema: JsonSchema): VariableError | undefined {
  schemaValidator ??= addFormats.default(new Ajv2020())
  if (schemaValidator.validateSchema(schema)) return undefined
  return toVariableError(schemaValidator.errors?.[0] as ErrorObject)
}

interface Notes {
  secret(pointer: string): void
  file(pointer: string, id: string): void
}

function createAjv(notes: Notes, { isFile }: FileRule, { allErrors }: { allErrors: boolean }): Ajv2020 {
  // Otherwise the member `constructor` that every object inherits would count as sent.
  const options = { useDefaults: true, strictTypes: false, strictRequired: false, ownProperties: true } as const
  const ajv = new Ajv2020({ ...options, allErrors, validateSchema: false })
  addFormats.default(ajv)
  // To Ajv, `writeOnly` is an annotation. As a keyword it reports secrets wherever $ref, anyOf etc. lead.
  ajv.removeKeyword('writeOnly').addKeyword({
    keyword: 'writeOnly',
    schemaType: 'boolean',
    errors: false,
    validate: (isWriteOnly: boolean, _value: unknown, _schema: unknown, context?: { instancePath: string }) => {
      if (isWriteOnly && context) notes.secret(context.instancePath)
      return true
    },
  })
  ajv.addFormat(fileFormat, isFile).addKeyword({
    keyword: fileKeyword,
    schemaType: 'boolean',
    errors: false,
    validate: (_isMarked: boolean, value: unknown, _schema: unknown, context?: { instancePath: string }) => {
      if (context && typeof value === 'string' && isFile(value)) notes.file(context.instancePath, value)
      return true
    },
  })
  return ajv
}

// Ajv does not tell a format where its value is, so that each schema with the format of files also gets a keyword.

/** The format of a variable that names a file. */
export const fileFormat = 'file'
const fileKeyword = 'x-execution-service-file'

/** Keywords whose members are values, not schemas. */
const valueKeywords = ['const', 'enum', 'default', 'examples']

function takesFiles(schema: JsonSchema): boolean {
  return withFileKeyword(schema) !== schema
}

/** The same object unless the schema, or one in it, has the format of files. */
function withFileKeyword<Value>(schema: Value): Value {
  if (typeof schema !== 'object' || schema === null) return schema
  const entries = Object.entries(schema)
  const changed = entries.map(([name, each]) => [name, valueKeywords.includes(name) ? each : withFileKeyword(each)])
  const isFile = 'format' in schema && schema.format === fileFormat
  if (!isFile && changed.every(([, each], index) => each === entries[index]?.[1])) return schema
  if (Array.isArray(schema)) return changed.map(([, each]) => each) as Value
  return { ...Object.fromEntries(changed), ...(isFile && { [fileKeyword]: true }) }
}

/** Of larger values only the first error is reported: a body of 1 MiB can have millions, which exhausted the memory. */
const allErrorsLengthMax = 16 * 1024

function createCheck(first: ValidateFunction, all: ValidateFunction): Check {
  return (value, errors) => {
    if (first(value)) return true
    const isSmall = JSON.stringify(value).length <= allErrorsLengthMax
    if (isSmall) all(value)
    errors.push(...((isSmall ? all.errors : first.errors) ?? []))
    return false
  }
}

function compile(ajv: Ajv2020, workflow: Workflow, member: SchemaMember): ValidateFunction {
  const schema = schemaOf(workflow, member)
  const refusal = (pointer: string, reason: string) => {
    const place = `The ${member} schema of workflow "${workflow.id}" is invalid`
    return new WorkflowSchemaError(workflow, member, pointer, `${place}: ${pointer || '/'} ${reason}.`)
  }
  const invalid = findInvalid(schema)
  if (invalid) throw refusal(invalid.pointer, invalid.detail)
  const marked = withFileKeyword(schema)
  if (marked !== schema && member !== 'variables')
    throw refusal('', 'has the format "file", which only variables may have')
  try {
    return ajv.compile(marked)
  } catch (error) {
    throw refusal(...explain(schema, (error as Error).message))
  }
}

/** The place in the schema that a message of Ajv is about, and the reason. */
function explain(schema: JsonSchema, message: string): [pointer: string, reason: string] {
  const [start, name = '', , place = ''] = message.split('"')
  if (start === 'unknown format ')
    return [`${decodeURI(place.slice(1))}/format`, `is "${name}", which is no known format`]
  const keyword = start === 'strict mode: unknown keyword: ' ? name : undefined
  const [, reference] = /^can't resolve reference (\S+) from/.exec(message) ?? []
  for (const { value, path } of walk(schema)) {
    const isSchema = !namesSchemas.includes(String(path.at(-1)))
    if (keyword !== undefined && isSchema && Object.hasOwn(Object(value), keyword))
      return [toPointer([...path, keyword]), 'is an unknown keyword']
    if (reference !== undefined && Object(value).$ref === reference)
      return [toPointer([...path, '$ref']), `refers to ${reference}, which the schema does not have`]
  }
  return ['', message]
}

/** Keywords whose members are names, not keywords. */
const namesSchemas = ['properties', 'patternProperties', '$defs', 'definitions', 'dependentSchemas']
