/** Requests to hold two servers against each other by, generated from the documents: each a change of a good one. */
import { type DocumentedOperation, operations, type Surface } from '../operations/document.ts'
import type { RawRequest } from '../operations/http.ts'
import {
  badCredentials,
  largeHeaders,
  nested,
  notHttp,
  notJson,
  notTaken,
  notUtf8,
  otherCredentials,
  unknownMethods,
  unknownPaths,
  unsupportedKinds,
} from '../operations/malformed.ts'
import { type Base, type KeyName, rawOf } from './servers.ts'
import { changedBodies, parameterValues } from './values.ts'

export interface ParityCase {
  title: string
  surface: Surface
  /** Without one, the request is none of any operation. */
  operation: DocumentedOperation | undefined
  /** A request, or the bytes of something that is none; `base` is good. */
  request(base: Base): RawRequest | string
  /** Sent to the service first. */
  before?(base: Base): RawRequest
}

type Make = (base: Base) => Base

export function casesOf(operation: DocumentedOperation): ParityCase[] {
  const { id, surface, parameters, body } = operation
  const one = (what: string, make: Make): ParityCase => {
    return { title: `${id}: ${what}`, surface, operation, request: (base) => rawOf(make(base)) }
  }
  return [
    one('as it should be', (base) => base),
    ...parameters.flatMap((parameter) => {
      const values = parameterValues(surface, parameter)
      const texts = values.map(([what, value]) => [`${parameter.name} ${what}`, value] as const)
      if (parameter.in === 'path') return texts.map(([what, value]) => one(what, withPath(parameter.name, value)))
      if (parameter.in === 'header') return headerCases(parameter.name, texts, one)
      return queryCases(parameter.name, texts, one)
    }),
    ...['colour=red', '__proto__=1', 'constructor[prototype]=1', '=1', '%zz=1', '&&'].map((text) => {
      return one(`the query ${text}`, (base) => ({ ...base, query: [...base.query, text] }))
    }),
    ...pathEscapes(operation).map(([what, make]) => one(what, make)),
    ...credentialCases(operation, one),
    ...acceptCases(operation, one),
    ...(body ? bodyCases(operation, one) : [one('a body that it does not take', withBody('{}'))]),
  ]
}

type One = (what: string, make: Make) => ParityCase

function queryCases(name: string, values: (readonly [string, string])[], one: One): ParityCase[] {
  const others = (base: Base) => base.query.filter((pair) => !pair.startsWith(`${name}=`))
  const given =
    (...pairs: string[]): Make =>
    (base) => ({ ...base, query: [...others(base), ...pairs] })
  const good = values[0]?.[1] ?? ''
  return [
    ...values.map(([what, value]) => one(what, given(`${name}=${encodeURIComponent(value)}`))),
    one(`${name} absent`, given()),
    one(`${name} empty`, given(`${name}=`)),
    one(`${name} without =`, given(name)),
    one(`${name} twice`, given(`${name}=${good}`, `${name}=${good}`)),
    one(`${name} in brackets`, given(`${name}[]=${good}`)),
    one(`${name} with U+0000`, given(`${name}=%00`)),
    one(`${name} with a broken escape`, given(`${name}=%zz`)),
    one(`${name} in capitals`, given(`${name.toUpperCase()}=${good}`)),
  ]
}

function headerCases(name: string, values: (readonly [string, string])[], one: One): ParityCase[] {
  const given =
    (...sent: string[]): Make =>
    (base) => {
      return { ...base, headers: [...base.headers, ...sent.flatMap((value) => [name, value])] }
    }
  return [
    ...values.map(([what, value]) => one(what, given(Buffer.from(value).toString('latin1')))),
    one(`${name} empty`, given('')),
    one(`${name} twice`, given('a', 'a')),
  ]
}

function withPath(name: string, value: string): Make {
  return (base) => ({ ...base, path: { ...base.path, [name]: encodeURIComponent(value) } })
}

function pathEscapes({ parameters }: DocumentedOperation): [string, Make][] {
  const names = parameters.filter((parameter) => parameter.in === 'path').map(({ name }) => name)
  return names.flatMap((name) =>
    ['%zz', '%00', '%2F', '%E0%A4%A', 'a;b', 'a+b'].map((text): [string, Make] => {
      return [`${name} that is ${text}`, (base) => ({ ...base, path: { ...base.path, [name]: text } })]
    }),
  )
}

function credentialCases({ surface }: DocumentedOperation, one: One): ParityCase[] {
  const named: KeyName[] = ['scopeless', 'scoped', 'expired', 'unknown']
  const [header, prefix] = surface === 'execution' ? ['Authorization', 'Bearer '] : ['x-service-api-key', '']
  const sent =
    (headersOf: (key: string) => string[]): Make =>
    (base) => {
      return { ...base, credential: ({ good }) => headersOf(good) }
    }
  const wrongInEverything: Make = (base) => ({
    ...withBody('{')({
      ...base,
      query: ['colour=red'],
      headers: ['Accept', 'image/gif', 'Content-Type', 'text/plain'],
    }),
    credential: ({ unknown }) => [header, `${prefix}${unknown}`],
  })
  const written = surface === 'execution' ? [...badCredentials, ...otherCredentials] : []
  return [
    ...named.map((name) => one(`a key that is ${name}`, (base) => ({ ...base, credential: name }))),
    ...written.map(([what, headersOf]) => one(`a credential ${what}`, sent(headersOf))),
    one(
      'no credential',
      sent(() => []),
    ),
    one(
      'an empty credential',
      sent(() => [header, '']),
    ),
    one(
      'a key that is no UUID',
      sent((key) => [header, `${prefix}${key}0`]),
    ),
    one(
      'a key in braces',
      sent((key) => [header, `${prefix}{${key}}`]),
    ),
    one(
      'a key in capitals',
      sent((key) => [header, `${prefix}${key.toUpperCase()}`]),
    ),
    one(
      'the same key twice',
      sent((key) => [header, `${prefix}${key}`, header, `${prefix}${key}`]),
    ),
    one(
      'a key in the header of the other surface',
      sent((key) => {
        return surface === 'execution' ? ['x-service-api-key', key] : ['Authorization', `Bearer ${key}`]
      }),
    ),
    one('an unknown key, and everything else wrong', wrongInEverything),
    one('a scopeless key, and everything else wrong', (base) => ({
      ...wrongInEverything(base),
      credential: 'scopeless',
    })),
  ]
}

function acceptCases({ responses }: DocumentedOperation, one: One): ParityCase[] {
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
    one(`Accept: ${accept}`, (base) => ({ ...base, headers: [...base.headers, 'Accept', accept] })),
  )
}

const json = ['Content-Type', 'application/json']

function withBody(body: string | Buffer | undefined, headers = json): Make {
  return ({ body: _, contentType: __, ...base }) => ({
    ...base,
    contentType: headers,
    ...(body !== undefined && { body }),
  })
}

function bodyCases({ surface, bodySchema, body = {}, bodyBytesMax }: DocumentedOperation, one: One): ParityCase[] {
  const examples = Object.entries(body)
  const [, example] = examples[0] ?? []
  const deep = JSON.stringify(example).replace(/^\{/, `{"deep":${'['.repeat(64)}${']'.repeat(64)},`)
  return [
    ...examples.map(([name, value]) => one(`the example ${name}`, withBody(JSON.stringify(value)))),
    ...changedBodies(surface, bodySchema, example).map(([what, value]) =>
      one(`a body ${what}`, withBody(JSON.stringify(value))),
    ),
    ...[...notJson, ...notUtf8].map(([what, text]) => one(`a body of ${what}`, withBody(text))),
    ...notTaken.map(([what, text]) => one(`a body with ${what}`, withBody(text))),
    ...['null', '[]', '"a"', '1', 'true', '{}'].map((text) => one(`the body ${text}`, withBody(text))),
    one('a body nested 65 levels deep', withBody(deep)),
    one('a body nested 5000 levels deep', withBody(nested(5000))),
    one('no body', withBody(undefined)),
    one('no body and no Content-Type', withBody(undefined, [])),
    one('an empty body', withBody('')),
    one('a byte order mark alone', withBody('\uFEFF')),
    one('a body after a byte order mark', withBody(`\uFEFF${JSON.stringify(example)}`)),
    one('a body in chunks', (base) => ({ ...withBody(JSON.stringify(example))(base), chunked: true })),
    one('a body of the greatest size', withBody(JSON.stringify(example).padEnd(bodyBytesMax))),
    one('a body that is too large', withBody(JSON.stringify(example).padEnd(bodyBytesMax + 1))),
    ...unsupportedKinds.map(([what, headers]) => one(`a body ${what}`, withBody(JSON.stringify(example), headers))),
    ...['application/json; charset=utf-8', 'Application/JSON', 'application/problem+json', 'text/json'].map((type) =>
      one(`a body of ${type}`, withBody(JSON.stringify(example), ['Content-Type', type])),
    ),
  ]
}

/** Requests that are no operation's: unknown paths and methods, and what is not HTTP. */
export function casesOfNone(): ParityCase[] {
  const none = (surface: Surface, title: string, request: RawRequest | string): ParityCase => {
    return { title, surface, operation: undefined, request: () => request }
  }
  const surfaceOf = (path: string): Surface => (path.startsWith('/alpha') ? 'browserContext' : 'execution')
  const heads = operations
    .filter(({ method }) => method === 'GET')
    .map(({ surface, path }) => {
      return none(surface, `HEAD ${path}`, { method: 'HEAD', path: path.replaceAll(/\{[^}]+\}/g, 'x') })
    })
  return [
    ...unknownPaths.map((path) => none('execution', `GET ${path}`, { method: 'GET', path })),
    ...['/', '/alpha', '/alpha/browser-contexts/', '/v1/execution/runs'].map((path) => {
      return none('browserContext', `GET ${path} of the other surface`, { method: 'GET', path })
    }),
    ...unknownMethods.map(([method, path]) => none(surfaceOf(path), `${method} ${path}`, { method, path })),
    ...heads,
    ...largeHeaders.map(([what, request]) => none('execution', `${what} of 20 KiB`, { method: 'GET', ...request })),
    ...notHttp.map(([what, text]) => none('execution', `not HTTP: ${what}`, text)),
  ]
}
