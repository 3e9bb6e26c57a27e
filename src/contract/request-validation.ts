/** Validates the parameters and the body of a request with EOV, and says which members are at fault. */
import { error as eovErrors } from 'express-openapi-validator'
import { bodyBytesMax, type Operation } from '../openapi/served-operations.ts'
import type { Body } from './body.ts'
import { pointerStep } from './json.ts'
import type { Parameters } from './parameters.ts'
import { invalidRequest, Problem, type ProblemMember } from './problem.ts'
import type { Validator, ValidatorRequest } from './validator.ts'

/** How many members at fault an answer names. */
const errorsMax = 20

/**
 * Of a larger body, only the first member at fault is named where the document permits more than the usual. To look
 * for all of them in 5 MiB of `{}` where cookies belong took more memory than there was, in 16 KiB it takes 50 ms.
 */
const allErrorsBytesMax = 16 * 1024

/** Calls `done` without an error when the request fits; the parameters then have their documented types and defaults. */
export type RequestValidation = (
  parameters: Parameters,
  body: Body | undefined,
  done: (error?: unknown) => void,
) => void

interface EovError {
  path: string
  message: string
  errorCode?: string
}

/** Rejects when EOV cannot compile the operation's schemas, which it otherwise tells only at the first request. */
export async function requestValidation(validator: Validator, operation: Operation): Promise<RequestValidation> {
  const metadata = validator.metadata(operation)
  const request = (
    { path, query, header }: Parameters,
    mediaType: string | undefined,
    body: unknown,
  ): ValidatorRequest => {
    // EOV keeps a validator for each media type that it sees (35 KiB, 3.5 ms), so it sees only the documented ones.
    if (mediaType) header['content-type'] = mediaType
    // EOV parses `originalUrl` for a query, which has been read already.
    const url = { method: operation.method, path: '', originalUrl: '/' }
    return { ...url, headers: header, query, params: path, body, openapi: { ...metadata, pathParams: path } }
  }
  await warmUp(validator, operation, request)
  // The validators are built now. At a request, EOV reads this list only to take apart arrays and objects that are
  // not in the default style; the parameters of operations that are served have none.
  metadata.schema = { ...metadata.schema, parameters: [] }
  return (parameters, body, done) => {
    validator.validateRequest(request(parameters, body?.mediaType, body?.value), undefined, (error) => {
      if (error !== undefined && !(error instanceof eovErrors.BadRequest)) return done(error)
      if (!error && parameters.errors.length === 0) return done()
      // A body of 1 MiB can have 100,000 errors; there are enough distinct ones among the first.
      const first = ((error?.errors ?? []) as EovError[]).slice(0, 10 * errorsMax)
      const found = first.map((it) => memberAtFault(operation, it, body?.value))
      // What was refused before is missing now.
      const isRefused = (it: ProblemMember) =>
        'parameter' in it && parameters.errors.some(({ parameter }) => parameter === it.parameter)
      const errors = distinct([...parameters.errors, ...found.filter((it) => !isRefused(it))]).slice(0, errorsMax)
      done(new Problem(invalidRequest(errors).problem))
    })
  }
}

/** Whether the document permits more than the usual. */
export function takesLargeBodies({ body }: Operation): boolean {
  return body !== undefined && body.bytesMax > bodyBytesMax
}

/** Leaves large bodies to a validation that stops at the first member at fault. */
export function bySize(all: RequestValidation, first: RequestValidation): RequestValidation {
  return (parameters, body, done) => {
    const validate = body && body.bytes > allErrorsBytesMax ? first : all
    validate(parameters, body, done)
  }
}

async function warmUp(
  validator: Validator,
  { id, body }: Operation,
  request: (parameters: Parameters, mediaType: string | undefined, body: unknown) => ValidatorRequest,
) {
  const mediaTypes = [...(body?.mediaTypes ?? []), ...(body?.required ? [] : [undefined])]
  for (const mediaType of mediaTypes) {
    const parameters = { path: {}, query: {}, header: {}, errors: [] }
    await new Promise<void>((resolve, reject) => {
      validator.validateRequest(request(parameters, mediaType, {}), undefined, (error) => {
        if (error === undefined || error instanceof eovErrors.BadRequest) resolve()
        else
          reject(new Error(`The request of ${id} cannot be validated: ${(error as Error).message}`, { cause: error }))
      })
    })
  }
}

function distinct(errors: ProblemMember[]): ProblemMember[] {
  return [...new Map(errors.map((error) => [JSON.stringify(error), error])).values()]
}

/** EOV's path starts with the part of the request: `/query/limit`, `/headers/prefer`, `/params/runId`, `/body/name`. */
function memberAtFault(operation: Operation, { path, message, errorCode }: EovError, body: unknown): ProblemMember {
  const [, part, first = ''] = path.split('/')
  const detail = detailOf(message, errorCode)
  if (part === 'body') return { pointer: pointer(path.slice('/body'.length), body, errorCode), detail }
  const name = first.replaceAll('~1', '/').replaceAll('~0', '~')
  if (part !== 'headers') return { parameter: name, detail }
  const header = operation.parameters.find((it) => it.in === 'header' && it.name.toLowerCase() === name)
  return { header: header?.name ?? name, detail }
}

function detailOf(message: string, errorCode = ''): string {
  if (errorCode.startsWith('required.')) return 'is required'
  if (isUnknownMember(errorCode)) return 'is not a documented member'
  return message
}

function isUnknownMember(errorCode = ''): boolean {
  return /^(additional|unevaluated)Properties\./.test(errorCode)
}

/**
 * The JSON Pointer of a place in the body. To that of an unknown member, EOV has appended the name as it is: here the
 * name is what remains when what stands before it has been found in the body.
 */
function pointer(path: string, body: unknown, errorCode: string | undefined): string {
  if (!isUnknownMember(errorCode)) return path
  let holder = body
  let before = ''
  for (;;) {
    const rest = path.slice(before.length + 1)
    const step = rest.split('/', 1)[0] as string
    if (step === rest || Object.hasOwn(Object(holder), rest)) return before + pointerStep(rest)
    holder = (holder as Record<string, unknown>)?.[step.replaceAll('~1', '/').replaceAll('~0', '~')]
    before += `/${step}`
  }
}
