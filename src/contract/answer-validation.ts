/** Holds answers to their document: status, media type, required headers, and the body's schema. */
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js'
import ajvFormats from 'ajv-formats'
import { error as eovErrors } from 'express-openapi-validator'
import type { Document, Schema } from '../openapi/document.ts'
import type { Operation } from '../openapi/served-operations.ts'
import { formats } from './formats.ts'
import type { Validator, ValidatorRequest } from './validator.ts'

/** Headers that the machinery puts on every answer. */
export const alwaysSent = ['X-Request-Id', 'X-Document-Hash', 'Cache-Control']

/** Says what is wrong, by the names of members and never by their values, or nothing when all is right. */
type Check = (value: unknown) => string | undefined

export interface AnswerValidation {
  /** `headers` by their names as the document spells them. */
  check(status: number, mediaType: string | undefined, headers: object, body: unknown): string | undefined
  /** For the data of one server-sent event. */
  checkEvent: Check
}

/** Compiles a schema of the document, once however often it is referred to. */
type Compile = (schema: Schema) => Check

/** Rejects when a schema of the operation's answers cannot be compiled. */
export async function answerValidation(
  validator: Validator,
  compile: Compile,
  operation: Operation,
): Promise<AnswerValidation> {
  const answers = new Map<number, { requiredHeaders: string[]; checks: Map<string, Check> }>()
  let checkEvent: Check = () => 'the operation has no event stream'
  for (const [status, { content, isBinary, requiredHeaders }] of operation.responses) {
    const checks = new Map<string, Check>()
    for (const [mediaType, schema] of Object.entries(content)) {
      if (isBinary) {
        checks.set(mediaType, areBytes)
        continue
      }
      // EOV validates neither answers from 500 on, nor those that are not JSON; see validator.ts for the other errors.
      const isForEov = status < 400 && mediaType.endsWith('json')
      checks.set(mediaType, isForEov ? await eovCheck(validator, operation, status, mediaType) : compile(schema))
      if (mediaType === 'text/event-stream') checkEvent = compile((schema.contentSchema ?? {}) as Schema)
    }
    answers.set(status, { checks, requiredHeaders: requiredHeaders.filter((name) => !alwaysSent.includes(name)) })
  }
  return {
    checkEvent,
    check(status, mediaType, headers, body) {
      const answer = answers.get(status)
      if (!answer) return `status ${status} is not documented`
      const missing = answer.requiredHeaders.find((name) => !(name in headers))
      if (missing) return `the header ${missing} is missing`
      if (mediaType === undefined) return answer.checks.size > 0 ? 'the body is missing' : undefined
      const check = answer.checks.get(mediaType)
      if (check && check !== areBytes && body instanceof Uint8Array) return 'the answer is not documented as bytes'
      return check ? check(body) : `the media type ${mediaType} is not documented`
    },
  }
}

/** What is in them is the caller's affair: a schema of the document describes JSON values, not files. */
const areBytes: Check = (body) => (body instanceof Uint8Array ? undefined : 'the body must be bytes')

/**
 * EOV validates an answer in the `json` that it puts into the response. Put into an object of ours instead, it can be
 * called again and again, at once and without Express.
 */
async function eovCheck(validator: Validator, operation: Operation, status: number, mediaType: string): Promise<Check> {
  let failure: unknown
  // EOV takes the only media type when it is told none, which spares it parsing one (1.5 µs).
  const isOnly = Object.keys(operation.responses.get(status)?.content ?? {}).length === 1
  const headers = isOnly ? {} : { 'content-type': mediaType }
  const response = {
    statusCode: status,
    headersSent: false,
    getHeaders: () => headers,
    json: (_body: unknown) => {},
  }
  const { method, path } = operation
  const openapi = validator.metadata(operation)
  const request: ValidatorRequest = { method, path, originalUrl: path, headers: {}, openapi }
  await new Promise<void>((resolve) => {
    validator.hookResponse(request, response, (error) => {
      failure = error
      resolve()
    })
  })
  const { json } = response
  const check = (body: unknown) => {
    failure = undefined
    json(body)
    return failure
  }
  // EOV compiles the schemas when it is called first.
  const first = failure ?? check({})
  if (first && !(first instanceof eovErrors.InternalServerError)) {
    throw new Error(`The answer ${status} of ${operation.id} cannot be validated: ${(first as Error).message}`, {
      cause: first,
    })
  }
  return (body) => {
    const error = check(body) as InstanceType<typeof eovErrors.InternalServerError> | undefined
    return error?.errors.map(({ path, message }) => `${path} ${message}`).join(', ')
  }
}

/** For what EOV does not validate. `$ref`s are looked up in `components`, where bundling puts what they name. */
export function schemaCompiler({ components }: Document): Compile {
  // Redocly lints the documents where they are written; compiling the schema of schemas takes 40 ms.
  const ajv = new Ajv2020({ strict: false, validateSchema: false })
  ajvFormats.default(ajv)
  for (const [name, format] of Object.entries(formats)) ajv.addFormat(name, format)
  const compiled = new Map<Schema, ValidateFunction>()
  return (schema) => {
    const validate = compiled.get(schema) ?? ajv.compile({ components, ...schema })
    compiled.set(schema, validate)
    return (value) => (validate(value) ? undefined : ajv.errorsText(validate.errors))
  }
}
