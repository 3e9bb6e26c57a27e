/** The workflows of the installation, and the validation of their variables and outputs. */
import { setImmediate as nextTick } from 'node:timers/promises'
import type { ErrorObject } from 'ajv'
import { toPointer } from '../../openapi/json-pointer.ts'
import { SchemaCompiler, WorkflowChecks } from './schema-checks.ts'
import { extractSecrets, findMasked, isShownAt, restoreSecrets, type Secrets } from './secrets.ts'
import type { Workflow } from './workflow.ts'

/** A value that does not match its schema: a JSON Pointer (RFC 6901) and the reason. */
export interface VariableError {
  pointer: string
  detail: string
}

type CheckedVariables =
  | { errors: VariableError[] }
  /** Variables with defaults filled in and secrets masked, and the secrets. */
  | { masked: Record<string, unknown>; secrets: Secrets }

const errorsMax = 20
/** The detail of the error for a mask that no earlier secret replaces. */
export const maskedSecretDetail = 'is the mask of a secret, not its value'

export class Workflows {
  /** Sorted by ID. */
  readonly #checks: ReadonlyMap<string, WorkflowChecks>

  /**
   * The schemas are compiled at their first use.
   *
   * @param deploymentId `null` for workflows that are not in the store.
   */
  constructor(
    workflows: readonly Workflow[] | ReadonlyMap<string, WorkflowChecks>,
    deploymentId: string | null = null,
  ) {
    const compiler = new SchemaCompiler()
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
    return new Workflows(new Map([...this.#checks, ...others.#checks]))
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
    const { errors, secretPointers } = this.#check(id, 'variables', value)
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
    const { errors, secretPointers } = this.#check(id, 'output', output)
    if (errors.length > 0) return { errors }
    if (secretPointers.length === 0) return { masked: output }
    const pointers = secretPointers.map((pointer) => `/output${pointer}`)
    return { masked: extractSecrets({ output }, pointers).masked.output }
  }

  #check(
    id: string,
    member: 'variables' | 'output',
    value: unknown,
  ): { errors: VariableError[]; secretPointers: string[] } {
    const checks = this.#checks.get(id)
    if (!checks) throw new Error(`There is no workflow "${id}".`)
    const { errors, secretPointers } = checks.check(member, value)
    return { errors: errors.slice(0, errorsMax).map(toVariableError), secretPointers }
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
