/** A replacement for curl on machines without it. It supports the options below and rejects all others. */
import { accessSync, constants, createWriteStream, readFileSync } from 'node:fs'
import { type IncomingMessage, request } from 'node:http'
import { delimiter, dirname, join } from 'node:path'
import { finished, pipeline } from 'node:stream/promises'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'

const standIn = fileURLToPath(new URL('stand-in', import.meta.url))

/** A PATH on which `curl` is the replacement. */
export const standInPath = [standIn, dirname(process.execPath), process.env.PATH].join(delimiter)

export const hasCurl = (process.env.PATH ?? '')
  .split(delimiter)
  .some((directory) => isExecutable(join(directory, 'curl')))

/** A PATH with a `curl`: the machine's, or else the replacement. */
export const pathWithCurl = hasCurl ? (process.env.PATH ?? '') : standInPath

function isExecutable(file: string): boolean {
  try {
    accessSync(file, constants.X_OK)
    return true
  } catch {
    return false
  }
}

const options = {
  data: { type: 'string', short: 'd' },
  'fail-with-body': { type: 'boolean' },
  header: { type: 'string', short: 'H', multiple: true },
  include: { type: 'boolean', short: 'i' },
  'no-buffer': { type: 'boolean', short: 'N' },
  output: { type: 'string', short: 'o' },
  request: { type: 'string', short: 'X' },
  'show-error': { type: 'boolean', short: 'S' },
  silent: { type: 'boolean', short: 's' },
  'upload-file': { type: 'string', short: 'T' },
} as const

/** curl's own exit codes. */
const exitCodes = { usage: 2, noConnection: 7, refused: 22 }

async function curl(args: string[]): Promise<number> {
  const { values, positionals } = parseArgs({ args, options, allowPositionals: true })
  const [url, ...others] = positionals
  if (!url || others.length > 0) throw new Error('Exactly one URL is required.')
  const upload = values['upload-file']
  const body = upload === undefined ? values.data : readFileSync(upload)
  if (typeof body === 'string' && body.startsWith('@')) throw new Error('-d does not support files: use -T.')
  const method = values.request ?? (upload !== undefined ? 'PUT' : body !== undefined ? 'POST' : 'GET')
  const headers = toHeaders(values.header ?? [], values.data !== undefined)
  const response = await send(url, method, headers, body)
  if (values.include) process.stdout.write(formatHead(response))
  if (values.output === undefined) for await (const part of response) process.stdout.write(part)
  else await pipeline(response, createWriteStream(values.output))
  const status = response.statusCode ?? 0
  if (!values['fail-with-body'] || status < 400) return 0
  process.stderr.write(`curl: (${exitCodes.refused}) The requested URL returned error: ${status}\n`)
  return exitCodes.refused
}

function toHeaders(lines: string[], isForm: boolean): Headers {
  const headers = new Headers({ Accept: '*/*', 'User-Agent': 'curl' })
  if (isForm) headers.set('Content-Type', 'application/x-www-form-urlencoded')
  for (const line of lines) {
    const [, name, value] = /^([^:]+):\s*(.+)$/.exec(line) ?? []
    if (!name || !value) throw new Error(`Headers without a value are not supported: ${line}`)
    headers.set(name, value)
  }
  return headers
}

function send(url: string, method: string, headers: Headers, body?: string | Buffer): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const length = body === undefined ? {} : { 'Content-Length': Buffer.byteLength(body) }
    const sent = request(url, { method, headers: { ...Object.fromEntries(headers), ...length } }, resolve)
    // For some methods Node sends `Content-Length: 0` without a body; curl sends neither header.
    if (body === undefined) for (const name of ['Content-Length', 'Transfer-Encoding']) sent.removeHeader(name)
    sent.once('error', reject).end(body)
  })
}

function formatHead({ httpVersion, statusCode, statusMessage, rawHeaders }: IncomingMessage): string {
  const names = rawHeaders.filter((_, index) => index % 2 === 0)
  const lines = names.map((name, index) => `${name}: ${rawHeaders[2 * index + 1]}`)
  return [`HTTP/${httpVersion} ${statusCode} ${statusMessage}`, ...lines, '', ''].join('\r\n')
}

if (import.meta.main) {
  process.exitCode = await curl(process.argv.slice(2)).catch((error) => {
    process.stderr.write(`curl: ${error.message}\n`)
    return error.code === 'ECONNREFUSED' ? exitCodes.noConnection : exitCodes.usage
  })
  if (process.stdout.writableNeedDrain) await finished(process.stdout)
}
