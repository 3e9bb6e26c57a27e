/**
 * Validates requests, and reports all validation errors as one problem. docs/decisions/0001-validation.md explains why
 * each path has its own validator.
 */
import type { Request, Response } from 'express'
import { type Document, type Schema, walk } from '../openapi/document.ts'
import { parsePointer, toPointer, valueAt } from '../openapi/json-pointer.ts'
import type { Operation } from '../openapi/served-operations.ts'
import type { Body } from './body.ts'
import type { ServedOperation } from './exchange.ts'
import { createValidator, offer, prepareValidation, type ValidationError, type Validator } from './openapi-validator.ts'
import type { Parameters } from './parameters.ts'
import { errorsMax, invalidRequest, Problem, type ProblemMember } from './problem.ts'

/**
 * In larger bodies only the first error is reported. Finding all errors in 5 MiB of `{}` in place of cookies exhausted the
 * memory; in 16 KiB it takes 50 ms.
 */
const allErrorsBytesMax = 16 * 1024

/**
 * Resolves when the request is valid; its parameters then have their documented types.
 *
 * @throws {Problem} with the validation errors.
 */
export type RequestValidation = (
  request: Request,
  response: Response,
  parameters: Parameters,
  body: Body | undefined,
) => Promise<void>

/**
 * Creates the validations of a document's operations.
 *
 * @throws {Error} when the document has something that EOV would refuse at the first request.
 */
export function requestValidations(document: Document): (operation: Operation) => RequestValidation {
  prepareValidation(document)
  const details = patternDetails(document)
  return (operation) => {
    const create = (allErrors: boolean) => createValidator(document, operation.path, allErrors)
    let [reportAll, reportFirst]: (Validator | undefined)[] = []
    const pathNames = operation.parameters.filter((it) => it.in === 'path').map(({ name }) => name)
    return async (request, response, parameters, body) => {
      // EOV decodes the path itself and reports an error without the name of the parameter.
      if (pathNames.some((name) => !(name in parameters.path))) throw problemFor(operation, parameters, body, [])
      const onlyFirst = body !== undefined && body.bytes > allErrorsBytesMax
      if (onlyFirst) reportFirst ??= create(false)
      else reportAll ??= create(true)
      const validate = (onlyFirst ? reportFirst : reportAll) as Validator
      const { errors, pathParameters } = await validate(request, response, parameters.query, body)
      if (errors.length > 0 || parameters.errors.length > 0)
        throw problemFor(operation, parameters, body, describePatterns(errors, details))
      Object.assign(parameters.path, pathParameters)
    }
  }
}

/**
 * Validates one request of each operation, which compiles its schemas: its first caller would wait for 50 to 130 ms of
 * CPU. The requests are Node's own objects without a connection, because the validator has no other way to compile.
 */
export async function compileValidations(operations: readonly ServedOperation[]): Promise<void> {
  for (const { operation, readParameters, validateRequest } of operations) {
    const values = operation.path.split('/').filter((segment) => segment.startsWith('{'))
    const body = operation.body && !operation.body.isRaw && { mediaType: 'application/json', value: {}, bytes: 2 }
    await offer(operation, (request, response) =>
      validateRequest(request, response, readParameters(values, ''), body || undefined).catch(() => {}),
    )
  }
}

/** What the document says in place of a pattern, by Ajv's message about it. */
export function patternDetails(document: Document): ReadonlyMap<string, string> {
  const schemas = [...walk(document)].map(({ value }) => Object(value) as Schema & { 'x-pattern-detail'?: unknown })
  return new Map(
    schemas.flatMap(({ pattern, 'x-pattern-detail': detail }) =>
      typeof detail === 'string' ? [[`must match pattern "${pattern}"`, detail] as const] : [],
    ),
  )
}

function describePatterns(errors: ValidationError[], details: ReadonlyMap<string, string>): ValidationError[] {
  return errors.map((error) => ({ ...error, message: details.get(error.message) ?? error.message }))
}

function problemFor(
  operation: Operation,
  { errors }: Parameters,
  body: Body | undefined,
  found: ValidationError[],
): Problem {
  const reported = new Set(errors.map(({ parameter }) => parameter))
  // 16 KiB can have thousands of errors; the first ones contain enough distinct ones.
  const members = found
    .slice(0, 10 * errorsMax)
    .map((it) => toMember(operation, it, body?.value))
    // A parameter that could not be read is missing for EOV.
    .filter((it) => !('parameter' in it && reported.has(it.parameter)))
  const distinct = new Map([...errors, ...members].map((it) => [JSON.stringify(it), it]))
  return new Problem(invalidRequest([...distinct.values()]).problem)
}

/** An EOV path begins with the part of the request: `/query/limit`, `/headers/prefer`, `/params/runId`, `/body/name`. */
function toMember(
  operation: Operation,
  { path, message, errorCode = '' }: ValidationError,
  body: unknown,
): ProblemMember {
  const isUnknown = /^(additional|unevaluated)Properties\./.test(errorCode)
  const isMissing = errorCode.startsWith('required.')
  const detail = isUnknown ? 'is not a documented member' : isMissing ? 'is required' : message
  const [part, name = ''] = parsePointer(path)
  if (part === 'body') {
    const pointer = path.slice('/body'.length)
    return { pointer: isUnknown ? unknownMemberPointer(pointer, body) : pointer, detail }
  }
  if (part !== 'headers') return { parameter: name, detail }
  const header = operation.parameters.find((it) => it.in === 'header' && it.name.toLowerCase() === name)
  return { header: header?.name ?? name, detail }
}

/** EOV appends the name of an unknown member without escapes: it is what remains below the object that contains it. */
function unknownMemberPointer(path: string, body: unknown): string {
  const tokens = path.split('/').slice(1)
  let parent = ''
  for (const [index, token] of tokens.entries()) {
    const rest = tokens.slice(index).join('/')
    if (rest === token || Object.hasOwn(Object(valueAt(body, parent)), rest)) return parent + toPointer([rest])
    parent += `/${token}`
  }
  return parent
}
