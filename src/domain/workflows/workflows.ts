/** The workflows of this installation, and the checks of their variables and outputs. */
import { fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import type { ErrorObject, ValidateFunction } from 'ajv'
import { Ajv2020 } from 'ajv/dist/2020.js'
import addFormats from 'ajv-formats'
import { environmentWithoutSecrets } from '../../config.ts'
import { toPointer } from '../../openapi/json-pointer.ts'
import type { Description } from './describe-workflows.ts'
import { extractSecrets, findMasked, isShownAt, restoreSecrets, type Secrets } from './secrets.ts'
import {
  type JsonSchema,
  loadExitError,
  loadSecondsMax,
  loadTimeoutError,
  type Workflow,
  WorkflowError,
} from './workflow.ts'

/** A member of variables or output that does not fit its schema: where (RFC 6901), and why. */
export interface VariableError {
  pointer: string
  detail: string
}

export type CheckedVariables =
  | { errors: VariableError[] }
  /** With the schema's defaults filled in, every secret masked, and what was masked. */
  | { masked: Record<string, unknown>; secrets: Secrets }

/** Fills `errors` when the value does not fit. */
type Check = (value: unknown, errors: ErrorObject[]) => boolean

interface Checks {
  workflow: Workflow
  variables: Check
  output: Check
}

const misfitsMax = 20
/** What is wrong with a mask that nothing stands behind. */
export const isMask = 'is the mask of a secret, not its value'

export class Workflows {
  readonly #checks: Map<string, Checks>
  #secretPointers: string[] = []

  /** @throws {WorkflowError} when a schema is not valid. */
  constructor(workflows: readonly Workflow[]) {
    const noteSecret = (pointer: string) => void this.#secretPointers.push(pointer)
    const [first, all] = [ajvOf(noteSecret, { allErrors: false }), ajvOf(noteSecret, { allErrors: true })]
    const compile = (workflow: Workflow, member: 'variables' | 'output') => {
      return checkOf(compiled(first, workflow, member), compiled(all, workflow, member))
    }
    const sorted = [...workflows].sort((a, b) => (a.id < b.id ? -1 : 1))
    this.#checks = new Map(
      sorted.map((workflow) => [
        workflow.id,
        { workflow, variables: compile(workflow, 'variables'), output: compile(workflow, 'output') },
      ]),
    )
  }

  /** Sorted by id. */
  list(): Workflow[] {
    return [...this.#checks.values()].map(({ workflow }) => workflow)
  }

  get(id: string): Workflow | undefined {
    return this.#checks.get(id)?.workflow
  }

  /**
   * Checks the variables for a run of the workflow. May fill defaults into `variables`. Where they hold the mask of a
   * secret that `earlier` has, that is put in its place. Any other mask where a secret belongs is a misfit: it was
   * copied from an answer, and the workflow would take it for the secret.
   */
  checkVariables(id: string, variables: Record<string, unknown>, earlier: Secrets = {}): CheckedVariables {
    const check = this.#of(id).variables
    const { value, restored } = restoreSecrets(variables, earlier)
    this.#secretPointers = []
    const errors: ErrorObject[] = []
    const fits = check(value, errors)
    const pointers = this.#secretPointers
    if (fits && pointers.length === 0 && restored.length === 0) return { masked: value, secrets: {} }

    const masks = findMasked(value, pointers)
    if (fits) {
      const taken = extractSecrets(value, pointers)
      // What the schema no longer calls a secret would come to light.
      masks.push(...restored.filter((pointer) => isShownAt(taken.masked, pointer)))
      if (masks.length === 0) return taken
    }
    const wrong = misfits(errors)
    // A secret that fits no more is not told of by its parts.
    masks.push(...restored.filter((pointer) => wrong.some((misfit) => isWithin(misfit.pointer, pointer))))
    const others = wrong.filter((misfit) => !masks.some((pointer) => isWithin(misfit.pointer, pointer)))
    return { errors: [...masks.map((pointer) => ({ pointer, detail: isMask })), ...others].slice(0, misfitsMax) }
  }

  /** Why the output does not fit, or the output with its secrets masked for good. */
  checkOutput(id: string, output: unknown): { errors: VariableError[] } | { masked: unknown } {
    const check = this.#of(id).output
    this.#secretPointers = []
    const errors: ErrorObject[] = []
    if (!check(output, errors)) return { errors: misfits(errors) }
    if (this.#secretPointers.length === 0) return { masked: output }
    const { masked } = extractSecrets(
      { output },
      this.#secretPointers.map((pointer) => `/output${pointer}`),
    )
    return { masked: masked.output }
  }

  #of(id: string): Checks {
    const checks = this.#checks.get(id)
    if (!checks) throw new Error(`There is no workflow "${id}".`)
    return checks
  }
}

function ajvOf(noteSecret: (pointer: string) => void, { allErrors }: { allErrors: boolean }): Ajv2020 {
  // Each schema is compiled without all errors at first, which tells whether it is valid.
  const validateSchema = !allErrors
  const ajv = new Ajv2020({ allErrors, validateSchema, useDefaults: true, strictTypes: false, strictRequired: false })
  addFormats.default(ajv)
  // `writeOnly` is an annotation to Ajv; as a keyword it tells where secrets are, through $ref, anyOf and the rest.
  ajv.removeKeyword('writeOnly').addKeyword({
    keyword: 'writeOnly',
    schemaType: 'boolean',
    errors: false,
    validate: (marked: boolean, _value: unknown, _schema: unknown, place?: { instancePath: string }) => {
      if (marked && place) noteSecret(place.instancePath)
      return true
    },
  })
  return ajv
}

/** Of larger values only the first misfit is told: a body of 1 MiB could have millions of them, and end the process. */
const allErrorsLengthMax = 16 * 1024

function checkOf(first: ValidateFunction, all: ValidateFunction): Check {
  return (value, errors) => {
    if (first(value)) return true
    const isSmall = JSON.stringify(value).length <= allErrorsLengthMax
    if (isSmall) all(value)
    errors.push(...((isSmall ? all.errors : first.errors) ?? []))
    return false
  }
}

function compiled(ajv: Ajv2020, workflow: Workflow, member: 'variables' | 'output'): ValidateFunction {
  try {
    return ajv.compile(workflow[member] as JsonSchema)
  } catch (error) {
    const { message } = error as Error
    throw new WorkflowError(`The ${member} schema of workflow "${workflow.id}" is not valid: ${message}.`)
  }
}

function misfits(errors: ErrorObject[]): VariableError[] {
  return errors.slice(0, misfitsMax).map((error) => {
    const { missingProperty, additionalProperty, unevaluatedProperty, allowedValues } = error.params
    const member = missingProperty ?? additionalProperty ?? unevaluatedProperty
    if (missingProperty !== undefined) return { pointer: below(error, member), detail: 'is required' }
    if (member !== undefined) return { pointer: below(error, member), detail: 'is not a member that the schema names' }
    const values = allowedValues ? `: ${allowedValues.map((value: unknown) => JSON.stringify(value)).join(', ')}` : ''
    return { pointer: error.instancePath, detail: `${error.message ?? 'does not fit'}${values}` }
  })
}

/** Whether a pointer leads to where another does, or further in. */
function isWithin(pointer: string, other: string): boolean {
  return `${pointer}/`.startsWith(`${other}/`)
}

function below({ instancePath }: ErrorObject, member: string): string {
  return instancePath + toPointer([member])
}

/**
 * Learns what the modules of `directory` say of themselves, from a process of their own that ends then.
 *
 * @throws {WorkflowError}
 */
export async function describeWorkflows(directory: string, secondsMax = loadSecondsMax): Promise<Workflow[]> {
  const module = fileURLToPath(new URL('./describe-workflows.ts', import.meta.url))
  // What a module prints is for people: standard output is for logs, and for the answers of commands.
  const env = environmentWithoutSecrets(process.env)
  const child = fork(module, [directory], { env, stdio: ['inherit', 2, 'inherit', 'ipc'] })
  let timer: NodeJS.Timeout | undefined
  const description = await new Promise<Description>((resolve, reject) => {
    child.on('message', (message: object) => {
      // Under `node --watch`, Node itself sends the parent messages of its own.
      if ('workflows' in message || 'refused' in message) resolve(message as Description)
    })
    child.once('error', reject)
    // Not 'exit', which may come before the message.
    child.once('close', (code, signal) => {
      reject(loadExitError(directory, signal ? `signal ${signal}` : `exit code ${code}`))
    })
    timer = setTimeout(() => {
      reject(loadTimeoutError(directory, secondsMax))
      child.kill('SIGKILL')
    }, secondsMax * 1000)
  }).finally(() => clearTimeout(timer))
  if ('refused' in description) throw new WorkflowError(description.refused)
  return JSON.parse(description.workflows)
}
