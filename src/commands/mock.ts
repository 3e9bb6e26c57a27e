/**
 * `mock`: the `prism` command on both documents, behind a server that decides by the API key, chooses 202 or 201 where
 * Prism would take 200, and refuses malformed JSON, at which Prism 5.16 never responds. All else is Prism's.
 */
import { type ChildProcess, type StdioOptions, spawn } from 'node:child_process'
import { once } from 'node:events'
import { type IncomingHttpHeaders, type IncomingMessage, request as openRequest, type ServerResponse } from 'node:http'
import { dirname, join } from 'node:path'
import { createInterface } from 'node:readline'
import { buffer } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import express from 'express'
import { shellCommand } from '../config/command-line.ts'
import { settings } from '../config/config.ts'
import { credentialReader } from '../contract/credential.ts'
import { type Listener, listen } from '../contract/listener.ts'
import { createPathLookup } from '../contract/path-lookup.ts'
import { apiKeyRealm } from '../domain/api-keys/api-key.ts'
import { type DocumentName, documentNames } from '../openapi/document.ts'
import { browserContextContract, executionContract } from '../openapi/served-documents.ts'
import { type Operation, readOperations } from '../openapi/served-operations.ts'
import { BuiltDocs, docsHandler, isDocsPath } from '../surfaces/docs/docs-handler.ts'
import { mockKeys, mockPorts, validKey } from './mock-keys.ts'
import { CommandError } from './output.ts'
import type { SimulateOptions } from './simulate.ts'
import { onStopSignal } from './stop-signal.ts'

interface MockOptions extends SimulateOptions {
  simulate?: boolean
}

/** @throws {CommandError} when Prism is not installed, or options do not belong together. */
export async function mock({ simulate: isSimulated = false, ...options }: MockOptions): Promise<void> {
  if (isSimulated) return (await import('./simulate.ts')).simulate(options)
  const [useless] = Object.keys(options)
  if (useless) throw new CommandError(`--${useless} needs --simulate.`)
  findPrism()
  const starting = startMock()
  onStopSignal(async () => (await starting).stop())
  process.stderr.write(`${banner(await starting)}\n`)
}

const contracts = { 'execution.v1': executionContract, 'browser-context.alpha': browserContextContract }

export interface Mock {
  executionUrl: string
  browserContextUrl: string
  stop(): Promise<void>
}

/**
 * @param environment has the ports and the host, as for the command.
 * @throws {ListenError} if a port is not available.
 */
export async function startMock(environment: NodeJS.ProcessEnv = process.env): Promise<Mock> {
  const listeners: Listener[] = []
  const prisms: ChildProcess[] = []
  const stop = async () =>
    void (await Promise.all([...listeners.map((each) => each.stop(1)), ...prisms.map(stopProcess)]))
  const docs = docsHandler(
    new BuiltDocs(() => ({ execution: listeners[0]?.url, 'browser-context': listeners[1]?.url })),
  )
  try {
    for (const name of documentNames) {
      const { variable, port } = mockPorts[name]
      const prism = spawnPrism('mock', name, ['--port', '0'], ['ignore', 'pipe', 'inherit'])
      prisms.push(prism)
      const url = await prismAddress(prism)
      const serve = front(readOperations(contracts[name].document), url)
      const app = express().disable('x-powered-by')
      app.use((request, response) =>
        isDocsPath(request.path) ? docs(request, response, () => {}) : serve(request, response),
      )
      const host = environment.HOST || settings.HOST.default
      const wanted = settings.EXECUTION_PORT.read(environment[variable] || port, variable)
      listeners.push(await listen(app, { host, port: wanted, name: variable }))
    }
  } catch (error) {
    await stop()
    throw error
  }
  const [executionUrl = '', browserContextUrl = ''] = listeners.map(({ url }) => url)
  return { executionUrl, browserContextUrl, stop }
}

function front(operations: Operation[], prismUrl: string) {
  const find = createPathLookup(operations)
  const { challenge, read } = credentialReader((operations[0] as Operation).scheme, apiKeyRealm)
  const cors = ({ origin = '*' }: IncomingHttpHeaders) => ({
    'Access-Control-Allow-Origin': origin,
    'Access-Control-Allow-Credentials': 'true',
    'Access-Control-Expose-Headers': 'WWW-Authenticate, X-Request-Id',
    'X-Request-Id': crypto.randomUUID(),
  })
  return async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const { method = 'GET', url = '/' } = request
    const operation = find(url.split('?')[0] as string)?.operations.get(method)
    if (!operation) return passOn(prismUrl, request, response, {})
    const key = mockKeys.find(({ value }) => value === read(request)?.toLowerCase())
    if (!key) {
      const headers = { 'Content-Type': 'text/plain', 'WWW-Authenticate': challenge, ...cors(request.headers) }
      return void response.writeHead(401, headers).end('Unauthorized')
    }
    const body = await buffer(request)
    if (isMalformed(request, body)) {
      const headers = { 'Content-Type': 'application/problem+json', ...cors(request.headers) }
      return void response.writeHead(400, headers).end(JSON.stringify(malformed(headers['X-Request-Id'])))
    }
    const refusal = key.status === '200' ? {} : { prefer: `code=${key.status}`, accept: '*/*' }
    passOn(prismUrl, request, response, { ...usualStatus(operation, request.headers.prefer), ...refusal }, body)
  }
}

function isMalformed({ headers }: IncomingMessage, body: Buffer): boolean {
  if (body.length === 0 || !headers['content-type']?.includes('json')) return false
  try {
    JSON.parse(body.toString())
    return false
  } catch {
    return true
  }
}

const malformed = (requestId: string) => ({
  type: '/docs/errors#invalid-request',
  title: 'Invalid request',
  status: 400,
  detail: 'The request is invalid. Nothing was stored.',
  requestId,
  errors: [{ pointer: '', detail: 'is not JSON' }],
})

/** Prism takes the lowest success: for a call that queues or creates, that is what a repeated or awaited one gets. */
function usualStatus({ responses }: Operation, prefer: string | string[] | undefined): { prefer?: string } {
  if (/\b(code|example|dynamic|wait)=/.test(String(prefer))) return {}
  const usual = [202, 201].find((status) => responses.has(status))
  return usual ? { prefer: `code=${usual}` } : {}
}

function passOn(
  prismUrl: string,
  request: IncomingMessage,
  response: ServerResponse,
  headers: IncomingHttpHeaders,
  body?: Buffer,
): void {
  const { method, url } = request
  const sent = openRequest(`${prismUrl}${url}`, { method, headers: { ...request.headers, ...headers } }, (answer) => {
    response.writeHead(answer.statusCode as number, answer.headers)
    answer.pipe(response)
  })
  sent.on('error', (error) => response.destroy(error))
  if (body) sent.end(body)
  else request.pipe(sent)
}

function banner({ executionUrl, browserContextUrl }: Mock): string {
  return [
    `Mock of the Execution API        ${executionUrl}`,
    `Mock of the Browser Context API  ${browserContextUrl}`,
    '',
    'Prism validates requests by the documents, and responds with their examples. It knows no workflows and keeps nothing.',
    `To keep state and set the clock, start the simulator: ${shellCommand('mock --simulate')}`,
    '',
    'API keys and the status of responses to them (401 for any other key):',
    ...mockKeys.map(({ value, status, meaning }) => `  ${value}  ${status}  ${meaning}`),
    '',
    `  curl ${executionUrl}/v1/execution/runs -H 'Authorization: Bearer ${validKey}'`,
    '',
    'To get any documented response, send `Prefer: code=404`, `Prefer: example=NAME` or `Prefer: dynamic=true`.',
    '',
  ].join('\n')
}

// The process of Prism.

const root = fileURLToPath(new URL('../..', import.meta.url))

/** An optional peer dependency of the published package. */
const peer = '@stoplight/prism-cli'

function findPrism(): string {
  try {
    return join(dirname(fileURLToPath(import.meta.resolve(`${peer}/package.json`))), 'dist/index.js')
  } catch {
    throw new CommandError(`The mock needs ${peer}, which is not installed: run \`npm install --save-dev ${peer}\`.`)
  }
}

/** Starts `prism mock` or `prism proxy` with the Node version of this process, which Prism requires. */
export function spawnPrism(
  command: 'mock' | 'proxy',
  name: DocumentName,
  args: string[],
  stdio: StdioOptions,
): ChildProcess {
  // Prism does not handle rejections, and would exit at the first malformed request.
  const nodeArgs = ['--unhandled-rejections=none', findPrism()]
  return spawn(process.execPath, [...nodeArgs, command, join(root, `generated/${name}/document.json`), ...args], {
    stdio,
  })
}

/** Passes on what Prism prints, and returns the address at which it listens. */
async function prismAddress(prism: ChildProcess): Promise<string> {
  const lines = createInterface({ input: prism.stdout as NodeJS.ReadableStream })
  const ended = once(prism, 'exit').then(([code]) => {
    throw new CommandError(`Prism ended with code ${code} before it listened.`)
  })
  const listening = new Promise<string>((resolve) => {
    lines.on('line', (line) => {
      const [, url] = /Prism is listening on (\S+)/.exec(line) ?? []
      if (url) resolve(url)
    })
  })
  return Promise.race([listening, ended])
}

async function stopProcess(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  child.kill()
  await once(child, 'exit')
}
