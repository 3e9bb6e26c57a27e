/** Requests for comparing two servers, derived from the documents: valid ones, and variations of them. */
import { type DocumentedOperation, operations, type Surface } from '../operations/document.ts'
import {
  acceptedCredentials,
  badCredentials,
  largeHeaders,
  nested,
  notHttp,
  notJson,
  notUtf8,
  refusedJson,
  unknownMethods,
  unknownPaths,
  unsupportedBodies,
} from '../operations/malformed-requests.ts'
import type { RawRequest } from '../operations/raw-http.ts'
import { type Base, type KeyName, toRawRequest } from './servers.ts'
import { modifiedBodies, parameterValues } from './values.ts'

export interface ParityCase {
  title: string
  surface: Surface
  /** Undefined for requests outside the documents. */
  operation: DocumentedOperation | undefined
  /** A request, or the bytes of invalid HTTP; `base` is a valid request. */
  request(base: Base): RawRequest | string
  /** Sent to the service first. */
  before?(base: Base): RawRequest
}

type Vary = (base: Base) => Base

export function casesForOperation(operation: DocumentedOperation): ParityCase[] {
  const { id, surface, parameters } = operation
  const createCase = (what: string, vary: Vary): ParityCase => {
    return { title: `${id}: ${what}`, surface, operation, request: (base) => toRawRequest(vary(base)) }
  }
  return [
    createCase('valid', (base) => base),
    ...parameters.flatMap((parameter) => {
      const values = parameterValues(surface, parameter)
      const texts = values.map(([what, value]) => [`${parameter.name} ${what}`, value] as const)
      if (parameter.in === 'path')
        return texts.map(([what, value]) => createCase(what, withPath(parameter.name, value)))
      if (parameter.in === 'header') return headerCases(parameter.name, texts, createCase)
      return queryCases(parameter.name, texts, createCase)
    }),
    ...['colour=red', '__proto__=1', 'constructor[prototype]=1', '=1', '%zz=1', '&&'].map((text) => {
      return createCase(`the query ${text}`, (base) => ({ ...base, query: [...base.query, text] }))
    }),
    ...(parameters.some(({ name }) => name === 'Range')
      ? [createCase('the first byte', (base) => ({ ...base, headers: [...base.headers, 'Range', 'bytes=0-0'] }))]
      : []),
    ...pathEscapes(operation).map(([what, vary]) => createCase(what, vary)),
    ...credentialCases(operation, createCase),
    ...acceptCases(operation, createCase),
    ...requestBodyCases(operation, createCase),
  ]
}

type CreateCase = (what: string, vary: Vary) => ParityCase

function queryCases(name: string, values: (readonly [string, string])[], createCase: CreateCase): ParityCase[] {
  const otherPairs = (base: Base) => base.query.filter((pair) => !pair.startsWith(`${name}=`))
  const withPairs =
    (...pairs: string[]): Vary =>
    (base) => ({ ...base, query: [...otherPairs(base), ...pairs] })
  const good = values[0]?.[1] ?? ''
  return [
    ...values.map(([what, value]) => createCase(what, withPairs(`${name}=${encodeURIComponent(value)}`))),
    createCase(`${name} missing`, withPairs()),
    createCase(`${name} empty`, withPairs(`${name}=`)),
    createCase(`${name} without =`, withPairs(name)),
    createCase(`${name} twice`, withPairs(`${name}=${good}`, `${name}=${good}`)),
    createCase(`${name} in brackets`, withPairs(`${name}[]=${good}`)),
    createCase(`${name} with U+0000`, withPairs(`${name}=%00`)),
    createCase(`${name} with malformed percent-encoding`, withPairs(`${name}=%zz`)),
    createCase(`${name} in capitals`, withPairs(`${name.toUpperCase()}=${good}`)),
  ]
}

function headerCases(name: string, values: (readonly [string, string])[], createCase: CreateCase): ParityCase[] {
  const withPairs =
    (...sent: string[]): Vary =>
    (base) => {
      return { ...base, headers: [...base.headers, ...sent.flatMap((value) => [name, value])] }
    }
  return [
    ...values.map(([what, value]) => createCase(what, withPairs(Buffer.from(value).toString('latin1')))),
    createCase(`${name} empty`, withPairs('')),
    createCase(`${name} twice`, withPairs('a', 'a')),
  ]
}

function withPath(name: string, value: string): Vary {
  return (base) => ({ ...base, path: { ...base.path, [name]: encodeURIComponent(value) } })
}

function pathEscapes({ parameters }: DocumentedOperation): [string, Vary][] {
  const names = parameters.filter((parameter) => parameter.in === 'path').map(({ name }) => name)
  return names.flatMap((name) =>
    ['%zz', '%00', '%2F', '%E0%A4%A', 'a;b', 'a+b'].map((text): [string, Vary] => {
      return [`${name} with the value ${text}`, (base) => ({ ...base, path: { ...base.path, [name]: text } })]
    }),
  )
}

function credentialCases({ surface }: DocumentedOperation, createCase: CreateCase): ParityCase[] {
  const keyNames: KeyName[] = ['scopeless', 'scoped', 'expired', 'unknown']
  const [header, prefix] = surface === 'execution' ? ['Authorization', 'Bearer '] : ['x-service-api-key', '']
  const withCredential =
    (headersOf: (key: string) => string[]): Vary =>
    (base) => {
      return { ...base, credential: ({ good }) => headersOf(good) }
    }
  const invalidEverywhere: Vary = (base) => ({
    ...withBody('{')({
      ...base,
      query: ['colour=red'],
      headers: ['Accept', 'image/gif', 'Content-Type', 'text/plain'],
    }),
    credential: ({ unknown }) => [header, `${prefix}${unknown}`],
  })
  const written = surface === 'execution' ? [...badCredentials, ...acceptedCredentials] : []
  return [
    ...keyNames.map((name) => createCase(`a key that is ${name}`, (base) => ({ ...base, credential: name }))),
    ...written.map(([what, headersOf]) => createCase(`a credential ${what}`, withCredential(headersOf))),
    createCase(
      'no credential',
      withCredential(() => []),
    ),
    createCase(
      'an empty credential',
      withCredential(() => [header, '']),
    ),
    createCase(
      'a key that is not a UUID',
      withCredential((key) => [header, `${prefix}${key}0`]),
    ),
    createCase(
      'a key in braces',
      withCredential((key) => [header, `${prefix}{${key}}`]),
    ),
    createCase(
      'a key in capitals',
      withCredential((key) => [header, `${prefix}${key.toUpperCase()}`]),
    ),
    createCase(
      'the same key twice',
      withCredential((key) => [header, `${prefix}${key}`, header, `${prefix}${key}`]),
    ),
    createCase(
      'a key in the header of the other surface',
      withCredential((key) => {
        return surface === 'execution' ? ['x-service-api-key', key] : ['Authorization', `Bearer ${key}`]
      }),
    ),
    createCase('an unknown key, and everything else invalid', invalidEverywhere),
    createCase('a scopeless key, and everything else invalid', (base) => ({
      ...invalidEverywhere(base),
      credential: 'scopeless',
    })),
  ]
}

function acceptCases({ responses }: DocumentedOperation, createCase: CreateCase): ParityCase[] {
  const types = [...responses].flatMap(([status, { schemas }]) => (status < 300 ? Object.keys(schemas) : []))
  const ranges = types.flatMap((type) => [
    type,
    `${type};q=0`,
    `image/gif, ${type};q=0.1`,
    `nonsense, ${type}`,
    type.replace(/\/.*/, '/*'),
  ])
  const others = ['*/*', 'image/gif', 'text/html, application/xml;q=0.9', 'application/problem+json', 'nonsense', '']
  return [...new Set([...ranges, ...others])].map((accept) =>
    createCase(`Accept: ${accept}`, (base) => ({ ...base, headers: [...base.headers, 'Accept', accept] })),
  )
}

const json = ['Content-Type', 'application/json']

function withBody(body: string | Buffer | undefined, headers = json): Vary {
  return ({ body: _, contentType: __, ...base }) => ({
    ...base,
    contentType: headers,
    ...(body !== undefined && { body }),
  })
}

function requestBodyCases(operation: DocumentedOperation, createCase: CreateCase): ParityCase[] {
  if (operation.bodySchema) return bodyCases(operation, createCase)
  return operation.body ? rawBodyCases(createCase) : [createCase('an undocumented body', withBody('{}'))]
}

/** A body of any media type. */
function rawBodyCases(createCase: CreateCase): ParityCase[] {
  return [
    ...notUtf8.map(([what, bytes]) => createCase(`a body of ${what}`, withBody(bytes, ['Content-Type', 'text/plain']))),
    ...unsupportedBodies.map(([what, headers]) => createCase(`a body ${what}`, withBody('{}', headers))),
    createCase('no body', withBody(undefined)),
    createCase('no body and no Content-Type', withBody(undefined, [])),
    createCase('an empty body', withBody('')),
    createCase('a chunked body', (base) => ({ ...withBody('{}')(base), chunked: true })),
  ]
}

function bodyCases(
  { surface, bodySchema, body = {}, bodyBytesMax }: DocumentedOperation,
  createCase: CreateCase,
): ParityCase[] {
  const examples = Object.entries(body)
  const [, example] = examples[0] ?? []
  const deep = JSON.stringify(example).replace(/^\{/, `{"deep":${'['.repeat(64)}${']'.repeat(64)},`)
  return [
    ...examples.map(([name, value]) => createCase(`the example ${name}`, withBody(JSON.stringify(value)))),
    ...modifiedBodies(surface, bodySchema, example).map(([what, value]) =>
      createCase(`a body ${what}`, withBody(JSON.stringify(value))),
    ),
    ...[...notJson, ...notUtf8].map(([what, text]) => createCase(`a body of ${what}`, withBody(text))),
    ...refusedJson.map(([what, text]) => createCase(`a body with ${what}`, withBody(text))),
    ...['null', '[]', '"a"', '1', 'true', '{}'].map((text) => createCase(`the body ${text}`, withBody(text))),
    createCase('a body nested 65 levels deep', withBody(deep)),
    createCase('a body nested 5000 levels deep', withBody(nested(5000))),
    createCase('no body', withBody(undefined)),
    createCase('no body and no Content-Type', withBody(undefined, [])),
    createCase('an empty body', withBody('')),
    createCase('only a byte order mark', withBody('\uFEFF')),
    createCase('a body after a byte order mark', withBody(`\uFEFF${JSON.stringify(example)}`)),
    createCase('a chunked body', (base) => ({ ...withBody(JSON.stringify(example))(base), chunked: true })),
    createCase('a body of the maximum size', withBody(JSON.stringify(example).padEnd(bodyBytesMax))),
    createCase('a body that is too large', withBody(JSON.stringify(example).padEnd(bodyBytesMax + 1))),
    ...unsupportedBodies.map(([what, headers]) =>
      createCase(`a body ${what}`, withBody(JSON.stringify(example), headers)),
    ),
    ...['application/json; charset=utf-8', 'Application/JSON', 'application/problem+json', 'text/json'].map((type) =>
      createCase(`a body of ${type}`, withBody(JSON.stringify(example), ['Content-Type', type])),
    ),
  ]
}

/** Requests outside the documents: unknown paths and methods, and invalid HTTP. */
export function casesWithoutOperation(): ParityCase[] {
  const createCase = (surface: Surface, title: string, request: RawRequest | string): ParityCase => {
    return { title, surface, operation: undefined, request: () => request }
  }
  const surfaceOf = (path: string): Surface => (path.startsWith('/alpha') ? 'browserContext' : 'execution')
  const heads = operations
    .filter(({ method }) => method === 'GET')
    .map(({ surface, path }) => {
      return createCase(surface, `HEAD ${path}`, { method: 'HEAD', path: path.replaceAll(/\{[^}]+\}/g, 'x') })
    })
  return [
    ...unknownPaths.map((path) => createCase('execution', `GET ${path}`, { method: 'GET', path })),
    ...['/', '/alpha', '/alpha/browser-contexts/', '/v1/execution/runs'].map((path) => {
      return createCase('browserContext', `GET ${path} of the other surface`, { method: 'GET', path })
    }),
    ...unknownMethods.map(([method, path]) => createCase(surfaceOf(path), `${method} ${path}`, { method, path })),
    ...heads,
    ...largeHeaders.map(([what, request]) =>
      createCase('execution', `${what} of 20 KiB`, { method: 'GET', ...request }),
    ),
    ...notHttp.map(([what, text]) => createCase('execution', `invalid HTTP: ${what}`, text)),
  ]
}
