/** The workflows of the installation, and the validation of their variables and outputs. */
import type { ErrorObject, ValidateFunction } from 'ajv'
import { Ajv2020 } from 'ajv/dist/2020.js'
import addFormats from 'ajv-formats'
import { toPointer } from '../../openapi/json-pointer.ts'
import { extractSecrets, findMasked, isShownAt, restoreSecrets, type Secrets } from './secrets.ts'
import { type JsonSchema, type Workflow, WorkflowError } from './workflow.ts'

/** A value that does not match its schema: a JSON Pointer (RFC 6901) and the reason. */
export interface VariableError {
  pointer: string
  detail: string
}

type CheckedVariables =
  | { errors: VariableError[] }
  /** Variables with defaults filled in and secrets masked, and the secrets. */
  | { masked: Record<string, unknown>; secrets: Secrets }

/** Returns whether the value is valid, and adds to `errors` if it is not. */
type Check = (value: unknown, errors: ErrorObject[]) => boolean

interface Checks {
  workflow: Workflow
  variables: Check
  output: Check
}

const errorsMax = 20
/** The detail of the error for a mask that no earlier secret replaces. */
export const maskedSecretDetail = 'is the mask of a secret, not its value'

export class Workflows {
  readonly #checks: Map<string, Checks>
  /** Where the last check found values of `writeOnly` schemas. */
  #secretPointers: string[] = []

  /** @throws {WorkflowError} if a schema is invalid. */
  constructor(workflows: readonly Workflow[]) {
    const noteSecret = (pointer: string) => void this.#secretPointers.push(pointer)
    const [first, all] = [createAjv(noteSecret, { allErrors: false }), createAjv(noteSecret, { allErrors: true })]
    const compileCheck = (workflow: Workflow, member: 'variables' | 'output') =>
      createCheck(compile(first, workflow, member), compile(all, workflow, member))
    const sorted = [...workflows].sort((a, b) => (a.id < b.id ? -1 : 1))
    this.#checks = new Map(
      sorted.map((workflow) => [
        workflow.id,
        { workflow, variables: compileCheck(workflow, 'variables'), output: compileCheck(workflow, 'output') },
      ]),
    )
  }

  /** Sorted by ID. */
  list(): Workflow[] {
    return [...this.#checks.values()].map(({ workflow }) => workflow)
  }

  get(id: string): Workflow | undefined {
    return this.#checks.get(id)?.workflow
  }

  /**
   * Validates the variables for a run, and fills defaults into `variables`. Masks are replaced by the secrets in
   * `earlier`; a mask without an earlier secret is an error, because it was copied from a response.
   */
  checkVariables(id: string, variables: Record<string, unknown>, earlier: Secrets = {}): CheckedVariables {
    const { value, restored } = restoreSecrets(variables, earlier)
    const { errors, secretPointers } = this.#check(this.#checksFor(id).variables, value)
    const masks = findMasked(value, secretPointers)
    if (errors.length === 0) {
      if (secretPointers.length === 0 && restored.length === 0) return { masked: value, secrets: {} }
      const extracted = extractSecrets(value, secretPointers)
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

  /** Validates an output, and masks its secrets. */
  checkOutput(id: string, output: unknown): { errors: VariableError[] } | { masked: unknown } {
    const { errors, secretPointers } = this.#check(this.#checksFor(id).output, output)
    if (errors.length > 0) return { errors }
    if (secretPointers.length === 0) return { masked: output }
    const pointers = secretPointers.map((pointer) => `/output${pointer}`)
    return { masked: extractSecrets({ output }, pointers).masked.output }
  }

  #check(check: Check, value: unknown): { errors: VariableError[]; secretPointers: string[] } {
    this.#secretPointers = []
    const errors: ErrorObject[] = []
    check(value, errors)
    return { errors: errors.slice(0, errorsMax).map(toVariableError), secretPointers: this.#secretPointers }
  }

  #checksFor(id: string): Checks {
    const checks = this.#checks.get(id)
    if (!checks) throw new Error(`There is no workflow "${id}".`)
    return checks
  }
}

function createAjv(noteSecret: (pointer: string) => void, { allErrors }: { allErrors: boolean }): Ajv2020 {
  // Schemas are compiled without `allErrors` first, which validates them.
  const validateSchema = !allErrors
  const ajv = new Ajv2020({ allErrors, validateSchema, useDefaults: true, strictTypes: false, strictRequired: false })
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
  try {
    return ajv.compile(workflow[member] as JsonSchema)
  } catch (error) {
    const { message } = error as Error
    throw new WorkflowError(`The ${member} schema of workflow "${workflow.id}" is invalid: ${message}.`)
  }
}

function toVariableError({ instancePath, message, params }: ErrorObject): VariableError {
  const { missingProperty, additionalProperty, unevaluatedProperty, allowedValues } = params
  const unknown = additionalProperty ?? unevaluatedProperty
  if (missingProperty !== undefined)
    return { pointer: instancePath + toPointer([missingProperty]), detail: 'is required' }
  if (unknown !== undefined) return { pointer: instancePath + toPointer([unknown]), detail: 'is not in the schema' }
  const values = allowedValues ? `: ${allowedValues.map((value: unknown) => JSON.stringify(value)).join(', ')}` : ''
  return { pointer: instancePath, detail: `${message ?? 'is invalid'}${values}` }
}

/** Whether `pointer` equals `other` or leads further into it. */
function isWithin(pointer: string, other: string): boolean {
  return `${pointer}/`.startsWith(`${other}/`)
}
