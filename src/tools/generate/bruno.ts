/** Writes a Bruno collection: a request for each operation, in folders by document and tag. */
import {
  envJsonToBruV2 as formatEnvironment,
  jsonToCollectionBru as formatFolder,
  jsonToBruV2 as formatRequest,
  type Pair,
  type Request,
} from '@usebruno/lang'
import { mockPorts, validKey } from '../../commands/mock-keys.ts'
import {
  type Document,
  type DocumentName,
  type DocumentOperation,
  listOperations,
  type ParameterObject,
  type ResponseObject,
  resolve,
} from '../../openapi/document.ts'

type Documents = Record<DocumentName, Document>

/** Users enter the key of their service; the mock's key is not secret. */
const serverKey = { value: '', secret: true }
const mockKey = { value: validKey, secret: false }

const manifest = { version: '1', name: 'Execution service', type: 'collection', ignore: [] }

export function writeBruno(documents: Documents): Map<string, string> {
  const files = new Map([
    ['bruno.json', `${JSON.stringify(manifest, null, 2)}\n`],
    [
      'environments/Server.bru',
      writeEnvironment(documents, (name) => documents[name].servers[0]?.url ?? '', serverKey),
    ],
    [
      'environments/Mock.bru',
      writeEnvironment(documents, (name) => `http://127.0.0.1:${mockPorts[name].port}`, mockKey),
    ],
  ])
  const variables = new Set(listPathVariables(documents).keys())
  listDocuments(documents).forEach(([name, document], index) => {
    const docs = document.info.description.trim()
    files.set(`${name}/folder.bru`, formatFolder({ meta: { name: document.info.title, seq: index + 1 }, docs }))
    writeTagFolders(files, { name, document, variables })
  })
  return files
}

function listDocuments(documents: Documents): [DocumentName, Document][] {
  return Object.entries(documents) as [DocumentName, Document][]
}

interface Surface {
  name: DocumentName
  document: Document
  /** Names of the environment's variables for path parameters. */
  variables: Set<string>
}

function writeTagFolders(files: Map<string, string>, surface: Surface): void {
  const { document, name } = surface
  const operations = listOperations(document)
  document.tags.forEach((tag, index) => {
    const folder = `${name}/${tag.name.toLowerCase().replaceAll(' ', '-')}`
    const meta = { name: tag.name, seq: index + 1 }
    files.set(`${folder}/folder.bru`, formatFolder({ meta, docs: tag.description.trim() }))
    const tagged = operations.filter(({ operation }) => operation.tags.includes(tag.name))
    // Deletions come last, so that Bruno can run a whole folder.
    const sorted = tagged.toSorted((one, other) => Number(one.method === 'delete') - Number(other.method === 'delete'))
    sorted.forEach((it, position) => {
      const text = formatRequest(createRequest(surface, it, position + 1))
      files.set(`${folder}/${it.operation.operationId}.bru`, text)
    })
  })
}

/** The address of each document, path parameters, and the key. Bruno does not write the value of a secret to the file. */
function writeEnvironment(
  documents: Documents,
  addressOf: (name: DocumentName) => string,
  key: { value: string; secret: boolean },
): string {
  const addresses = listDocuments(documents).map(([name]) => [addressVariable(name), addressOf(name)] as const)
  const variables = [...addresses, ...listPathVariables(documents)].map(([name, value]) => {
    return { name, value, enabled: true, secret: false }
  })
  return formatEnvironment({ variables: [...variables, { name: 'apiKey', enabled: true, ...key }] })
}

/** All path parameters, each with an example. */
function listPathVariables(documents: Documents): Map<string, string> {
  const parameters = listDocuments(documents).flatMap(([, document]) =>
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

function createRequest(surface: Surface, it: DocumentOperation, seq: number): Request {
  const { name, document } = surface
  const { path, method, operation, parameters } = it
  const json = exampleBody(document, it, surface.variables)
  const pairs = (location: ParameterObject['in']) =>
    parameters.filter((each) => each.in === location).map((each) => toPair(surface, each))
  const { mode, auth } = credential(document)
  return {
    meta: { name: operation.summary, type: 'http', seq },
    http: {
      method,
      url: `{{${addressVariable(name)}}}${path.replace(/\{(\w+)\}/g, ':$1')}`,
      body: json ? 'json' : 'none',
      auth: mode,
    },
    params: [
      ...pairs('query').map((pair) => ({ ...pair, type: 'query' as const })),
      ...pairs('path').map((pair) => ({ ...pair, type: 'path' as const })),
    ],
    headers: pairs('header'),
    auth,
    body: json ? { json } : {},
    vars: { res: variablesFromResponse(surface, it) },
    docs: describe(it),
  }
}

/** Path parameters come from variables; optional parameters are disabled. */
function toPair({ document, variables }: Surface, parameter: ParameterObject): Pair {
  const { name, required = false } = parameter
  return { name, value: variables.has(name) ? `{{${name}}}` : exampleOf(document, parameter), enabled: required }
}

function exampleOf(document: Document, { example, schema }: ParameterObject): string {
  const resolved = resolve<{ example?: unknown; default?: unknown; enum?: unknown[] }>(document, schema)
  return String(example ?? resolved.example ?? resolved.default ?? resolved.enum?.[0] ?? '')
}

function credential(document: Document): { mode: Request['http']['auth']; auth: Request['auth'] } {
  const [scheme] = Object.values(document.components.securitySchemes ?? {}) as { type: string; name?: string }[]
  const value = '{{apiKey}}'
  if (scheme?.type === 'http') return { mode: 'bearer', auth: { bearer: { token: value } } }
  return { mode: 'apikey', auth: { apikey: { key: scheme?.name ?? '', value, placement: 'header' } } }
}

/** The first example. A member named like a path parameter, such as `runId`, has its variable. */
function exampleBody(
  document: Document,
  { operation }: DocumentOperation,
  variables: ReadonlySet<string>,
): string | undefined {
  const { examples = {} } = operation.requestBody?.content['application/json'] ?? {}
  const [example] = Object.values(examples)
  if (!example) return undefined
  const { value } = resolve<{ value: object }>(document, example)
  const withVariables = Object.entries(value).map(([name, each]) => [name, variables.has(name) ? `{{${name}}}` : each])
  return JSON.stringify(Object.fromEntries(withVariables), null, 2)
}

/**
 * An operation that creates a resource (201, 202) stores its id in the variable of a path parameter, which other requests
 * use: `endpointId` for a `NewWebhookEndpoint`.
 */
function variablesFromResponse(
  { document, variables }: Surface,
  { operation }: DocumentOperation,
): Request['vars']['res'] {
  const created = operation.responses[201] ?? operation.responses[202]
  const content = created && resolve<ResponseObject>(document, created).content
  const schema = String(content?.['application/json']?.schema?.$ref).split('/').at(-1) ?? ''
  const name = [...variables].find((each) => `${schema}Id`.endsWith(each.charAt(0).toUpperCase() + each.slice(1)))
  return name ? [{ name, value: 'res.body.id', enabled: true, local: false }] : []
}

function describe({ operation, parameters }: DocumentOperation): string {
  const list = parameters.map(({ name, in: location, description }) => {
    return `- \`${name}\` (${location}): ${description.trim().replace(/\s+/g, ' ')}`
  })
  return [operation.description.trim(), ...(list.length > 0 ? [list.join('\n')] : [])].join('\n\n')
}
