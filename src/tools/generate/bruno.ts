/** Writes a collection for Bruno: a request for each operation, in a folder for each document and tag. */
import {
  envJsonToBruV2 as environmentText,
  jsonToCollectionBru as folderText,
  type Pair,
  type Request,
  jsonToBruV2 as requestText,
} from '@usebruno/lang'
import {
  type Document,
  type DocumentName,
  type DocumentOperation,
  listOperations,
  type ParameterObject,
  type ResponseObject,
  resolve,
} from '../../openapi/document.ts'
import { goodKey } from '../mock/keys.ts'
import { mockPorts } from '../mock/ports.ts'

type Documents = Record<DocumentName, Document>

interface Surface {
  name: DocumentName
  document: Document
  /** The names of the environment's variables that stand in paths. */
  variables: Set<string>
}

/** Where the mock serves each document. */
const mockAddresses: Record<DocumentName, string> = {
  'execution.v1': `http://127.0.0.1:${mockPorts.execution}`,
  'browser-context.alpha': `http://127.0.0.1:${mockPorts.browserContext}`,
}

/** Whoever opens the collection types the key of a service; the mock's is no secret. */
const serverKey = { value: '', secret: true }
const mockKey = { value: goodKey.value, secret: false }

const description = { version: '1', name: 'Execution service', type: 'collection', ignore: [] }

/** The files of the collection: their text by their path within it. */
export function writeBruno(documents: Documents): Map<string, string> {
  const variables = new Set(pathVariables(documents).keys())
  const files = new Map([
    ['bruno.json', `${JSON.stringify(description, null, 2)}\n`],
    ['environments/Server.bru', environment(documents, (name) => documents[name].servers[0]?.url ?? '', serverKey)],
    ['environments/Mock.bru', environment(documents, (name) => mockAddresses[name], mockKey)],
  ])
  entriesOf(documents).forEach(([name, document], index) => {
    const docs = document.info.description.trim()
    files.set(`${name}/folder.bru`, folderText({ meta: { name: document.info.title, seq: index + 1 }, docs }))
    writeTags(files, { name, document, variables })
  })
  return files
}

function entriesOf(documents: Documents): [DocumentName, Document][] {
  return Object.entries(documents) as [DocumentName, Document][]
}

function writeTags(files: Map<string, string>, surface: Surface): void {
  const { document, name } = surface
  const operations = listOperations(document)
  document.tags.forEach((tag, index) => {
    const folder = `${name}/${tag.name.toLowerCase().replaceAll(' ', '-')}`
    const meta = { name: tag.name, seq: index + 1 }
    files.set(`${folder}/folder.bru`, folderText({ meta, docs: tag.description.trim() }))
    const tagged = operations.filter(({ operation }) => operation.tags.includes(tag.name))
    // Whoever has Bruno send a whole folder has nothing deleted before its last request.
    const sorted = tagged.toSorted((one, other) => Number(one.method === 'delete') - Number(other.method === 'delete'))
    sorted.forEach((it, position) => {
      const text = requestText(request(surface, it, position + 1))
      files.set(`${folder}/${it.operation.operationId}.bru`, text)
    })
  })
}

/** The address of each document, what stands in paths, and the key; Bruno keeps a secret's value out of the file. */
function environment(
  documents: Documents,
  addressOf: (name: DocumentName) => string,
  key: { value: string; secret: boolean },
): string {
  const addresses = entriesOf(documents).map(([name]) => [addressVariable(name), addressOf(name)] as const)
  const variables = [...addresses, ...pathVariables(documents)].map(([name, value]) => {
    return { name, value, enabled: true, secret: false }
  })
  return environmentText({ variables: [...variables, { name: 'apiKey', enabled: true, ...key }] })
}

/** What stands in the paths of all operations, with an example of each. */
function pathVariables(documents: Documents): Map<string, string> {
  const parameters = entriesOf(documents).flatMap(([, document]) =>
    listOperations(document).flatMap((it) => it.parameters.map((parameter) => ({ document, parameter }))),
  )
  const inPaths = parameters.filter(({ parameter }) => parameter.in === 'path')
  return new Map(inPaths.map(({ document, parameter }) => [parameter.name, exampleOf(document, parameter)]))
}

/** `browser-context.alpha` → `browserContextUrl`. */
function addressVariable(name: DocumentName): string {
  const [surface = ''] = name.split('.')
  return `${surface.replace(/-(.)/g, (_, letter) => letter.toUpperCase())}Url`
}

function request(surface: Surface, it: DocumentOperation, seq: number): Request {
  const { name, document } = surface
  const { path, method, operation, parameters } = it
  const json = exampleBody(document, it)
  const pairs = (place: ParameterObject['in']) => parameters.filter((each) => each.in === place).map(pairOf(surface))
  return {
    meta: { name: operation.summary, type: 'http', seq },
    http: {
      method,
      url: `{{${addressVariable(name)}}}${path.replace(/\{(\w+)\}/g, ':$1')}`,
      body: json ? 'json' : 'none',
      ...credential(document).mode,
    },
    params: [
      ...pairs('query').map((pair) => ({ ...pair, type: 'query' as const })),
      ...pairs('path').map((pair) => ({ ...pair, type: 'path' as const })),
    ],
    headers: pairs('header'),
    auth: credential(document).auth,
    body: json ? { json } : {},
    vars: { res: kept(document, it) },
    docs: docsOf(it),
  }
}

/** What stands in a path somewhere comes from a variable; what may be left out is switched off. */
function pairOf({ document, variables }: Surface) {
  return (parameter: ParameterObject): Pair => {
    const { name, required = false } = parameter
    return { name, value: variables.has(name) ? `{{${name}}}` : exampleOf(document, parameter), enabled: required }
  }
}

function exampleOf(document: Document, { example, schema }: ParameterObject): string {
  const {
    example: usual,
    default: fallback,
    enum: choices,
  } = resolve<{ example?: unknown; default?: unknown; enum?: unknown[] }>(document, schema)
  return String(example ?? usual ?? fallback ?? choices?.[0] ?? '')
}

function credential(document: Document): { mode: { auth: Request['http']['auth'] }; auth: Request['auth'] } {
  const [scheme] = Object.values(document.components.securitySchemes ?? {}) as { type: string; name?: string }[]
  const value = '{{apiKey}}'
  if (scheme?.type === 'http') return { mode: { auth: 'bearer' }, auth: { bearer: { token: value } } }
  return { mode: { auth: 'apikey' }, auth: { apikey: { key: scheme?.name ?? '', value, placement: 'header' } } }
}

/** The first example of the body as JSON. */
function exampleBody(document: Document, { operation }: DocumentOperation): string | undefined {
  const { examples = {} } = operation.requestBody?.content['application/json'] ?? {}
  const [example] = Object.values(examples)
  if (!example) return undefined
  return JSON.stringify(resolve<{ value: unknown }>(document, example).value, null, 2)
}

/** An operation that makes something says where (`Location`): its id is then what the other requests are about. */
function kept(document: Document, { operation }: DocumentOperation): Request['vars']['res'] {
  const responses = Object.values(operation.responses).map((it) => resolve<ResponseObject>(document, it))
  const answer = responses.find(({ headers }) => headers && 'Location' in headers)
  const [, made] = /\/schemas\/(\w+)$/.exec(String(answer?.content?.['application/json']?.schema?.$ref)) ?? []
  if (!made) return []
  const name = `${made.charAt(0).toLowerCase()}${made.slice(1)}Id`
  return [{ name, value: 'res.body.id', enabled: true, local: false }]
}

function docsOf({ operation, parameters }: DocumentOperation): string {
  const listed = parameters.map(({ name, in: place, description }) => {
    return `- \`${name}\` (${place}): ${description.trim().replace(/\s+/g, ' ')}`
  })
  return [operation.description.trim(), ...(listed.length > 0 ? [listed.join('\n')] : [])].join('\n\n')
}
