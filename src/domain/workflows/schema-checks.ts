/** Compiles the schemas of workflows into checks, at their first use. */
import type { ErrorObject, ValidateFunction } from 'ajv'
import { Ajv2020 } from 'ajv/dist/2020.js'
import addFormats from 'ajv-formats'
import { type JsonSchema, type Workflow, WorkflowError } from './workflow.ts'

/** Returns whether the value is valid, and adds to `errors` if it is not. */
type Check = (value: unknown, errors: ErrorObject[]) => boolean

/** The schemas of one list of workflows, which may refer to each other by `$id`. */
export class SchemaCompiler {
  #ajv: { first: Ajv2020; all: Ajv2020 } | undefined
  /** Where the last check found values of `writeOnly` schemas. */
  #secretPointers: string[] = []

  /** @throws {WorkflowError} if the schema is invalid. */
  compile(workflow: Workflow, member: 'variables' | 'output'): Check {
    const noteSecret = (pointer: string) => void this.#secretPointers.push(pointer)
    this.#ajv ??= {
      first: createAjv(noteSecret, { allErrors: false }),
      all: createAjv(noteSecret, { allErrors: true }),
    }
    return createCheck(compile(this.#ajv.first, workflow, member), compile(this.#ajv.all, workflow, member))
  }

  /** @param check of this compiler. */
  run(check: Check, value: unknown): { errors: ErrorObject[]; secretPointers: string[] } {
    this.#secretPointers = []
    const errors: ErrorObject[] = []
    check(value, errors)
    return { errors, secretPointers: this.#secretPointers }
  }
}

/** The checks of one workflow. */
export class WorkflowChecks {
  readonly workflow: Workflow
  /** `null` for workflows that no deployment has, in tests. */
  readonly deploymentId: string | null
  readonly #compiler: SchemaCompiler
  #variables: Check | undefined
  #output: Check | undefined

  constructor(workflow: Workflow, deploymentId: string | null, compiler: SchemaCompiler) {
    this.workflow = workflow
    this.deploymentId = deploymentId
    this.#compiler = compiler
  }

  get isCompiled(): boolean {
    return this.#variables !== undefined && this.#output !== undefined
  }

  /** @throws {WorkflowError} if a schema is invalid. */
  compile(): void {
    this.#variables ??= this.#compiler.compile(this.workflow, 'variables')
    this.#output ??= this.#compiler.compile(this.workflow, 'output')
  }

  check(member: 'variables' | 'output', value: unknown): { errors: ErrorObject[]; secretPointers: string[] } {
    if (member === 'variables') this.#variables ??= this.#compiler.compile(this.workflow, member)
    else this.#output ??= this.#compiler.compile(this.workflow, member)
    return this.#compiler.run((member === 'variables' ? this.#variables : this.#output) as Check, value)
  }
}

let schemaValidator: Ajv2020 | undefined

/** One for all lists: compiling JSON Schema's own schema takes 40 ms. */
function requireValid(schema: JsonSchema): void {
  schemaValidator ??= addFormats.default(new Ajv2020())
  schemaValidator.validateSchema(schema, true)
}

function createAjv(noteSecret: (pointer: string) => void, { allErrors }: { allErrors: boolean }): Ajv2020 {
  const options = { useDefaults: true, strictTypes: false, strictRequired: false } as const
  const ajv = new Ajv2020({ ...options, allErrors, validateSchema: false })
  addFormats.default(ajv)
  // To Ajv, `writeOnly` is an annotation. As a keyword it reports secrets wherever $ref, anyOf etc. lead.
  ajv.removeKeyword('writeOnly').addKeyword({
    keyword: 'writeOnly',
    schemaType: 'boolean',
    errors: false,
    validate: (isWriteOnly: boolean, _value: unknown, _schema: unknown, context?: { instancePath: string }) => {
      if (isWriteOnly && context) noteSecret(context.instancePath)
      return true
    },
  })
  return ajv
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

function compile(ajv: Ajv2020, workflow: Workflow, member: 'variables' | 'output'): ValidateFunction {
  const schema = workflow[member] as JsonSchema
  try {
    requireValid(schema)
    return ajv.compile(schema)
  } catch (error) {
    const { message } = error as Error
    throw new WorkflowError(`The ${member} schema of workflow "${workflow.id}" is invalid: ${message}.`)
  }
}
