/**
 * Serves the docs under /docs/. The pages of the reference are built at the first request for one, the others at the first
 * request for any, and each file is compressed once.
 */
import { extname } from 'node:path'
import { promisify } from 'node:util'
import { Worker } from 'node:worker_threads'
import { gzip } from 'node:zlib'
import type { Request, RequestHandler, Response } from 'express'
import type { Addresses } from './contracts.ts'
import type { Docs, Site, SiteFile } from './site.ts'

const root = '/docs/'

export function isDocsPath(path: string): boolean {
  return (path === '/docs' || path.startsWith(root)) && !isWorkflowDocsPath(path)
}

/** Whether the path belongs to an account's workflows: a page, their document, or their search index. */
export function isWorkflowDocsPath(path: string): boolean {
  return /^\/docs\/workflows(?:\.js|\.json|\/.*)?$/s.test(path)
}

/** Only pages of the reference have their own scripts. */
function contentSecurityPolicy(scriptHashes: readonly string[]): string {
  // Redoc writes styles into the page, embeds a font, and highlights code in workers from blobs.
  const forRedoc = ["style-src 'self' 'unsafe-inline'", 'worker-src blob:', "img-src 'self' data:", 'font-src data:']
  return [
    "default-src 'none'",
    ["script-src 'self'", ...scriptHashes].join(' '),
    ...(scriptHashes.length > 0 ? forRedoc : ["style-src 'self'", "img-src 'self' data:"]),
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join('; ')
}

const securityHeaders = {
  'X-Content-Type-Options': 'nosniff',
  'X-Frame-Options': 'DENY',
  'Referrer-Policy': 'same-origin',
  'Cross-Origin-Opener-Policy': 'same-origin',
}

export function setDocsHeaders(response: Response): void {
  response.set({ 'Content-Security-Policy': contentSecurityPolicy([]), ...securityHeaders })
}

export interface Build {
  /** Module of a worker thread that posts a part of the docs. */
  thread: URL
  /** The reference takes three seconds on an idle machine. */
  timeoutSeconds: number
}

const defaultBuild: Build = {
  thread: new URL(`./site-thread${extname(import.meta.url)}`, import.meta.url),
  timeoutSeconds: 60,
}

/** What a thread builds at a time. */
interface Parts {
  docs: Docs
  reference: Site
}

/** Rejects when the thread fails, exits without docs, or exceeds the timeout. */
async function buildInThread<Name extends keyof Parts>(
  { thread: file, timeoutSeconds }: Build,
  part: Name,
  addresses: Addresses,
): Promise<Parts[Name]> {
  const thread = new Worker(file, { workerData: { part, addresses } })
  const { promise, resolve, reject } = Promise.withResolvers<Parts[Name]>()
  const fail = (reason: string) => reject(new Error(`Building the docs failed: ${reason}.`))
  const timer = setTimeout(() => fail(`no result after ${timeoutSeconds} seconds`), timeoutSeconds * 1000)
  thread.once('message', resolve).once('error', reject)
  thread.once('exit', (code) => fail(`the thread exited with code ${code}`))
  try {
    return await promise
  } finally {
    clearTimeout(timer)
    void thread.terminate()
  }
}

/** The docs of a service, each part built by the first request for it. Create one for all hosts, since each keeps its site in memory. */
export class BuiltDocs {
  readonly #addresses: () => Addresses
  readonly #build: Build
  readonly #parts: { [Name in keyof Parts]?: Promise<Parts[Name]> | undefined } = {}

  /** @param addresses called when the docs are built; returns the public addresses. */
  constructor(addresses: () => Addresses, build = defaultBuild) {
    this.#addresses = addresses
    this.#build = build
  }

  get(): Promise<Docs> {
    this.#parts.docs ??= this.#start('docs')
    return this.#parts.docs
  }

  /** The file at a path below `/docs/`; `undefined` if there is none. */
  async find(name: string): Promise<SiteFile | undefined> {
    const { site, references } = await this.get()
    const file = site.get(name) ?? site.get(`${name}.html`)
    if (file || !(references.includes(name.replace(/\.html$/, '')) || isReferenceScript(name))) return file
    this.#parts.reference ??= this.#start('reference')
    const reference = await this.#parts.reference
    return reference.get(name) ?? reference.get(`${name}.html`)
  }

  #start<Name extends keyof Parts>(part: Name): Promise<Parts[Name]> {
    return buildInThread(this.#build, part, this.#addresses()).catch((error) => {
      // Let the next request try again.
      this.#parts[part] = undefined
      throw error
    })
  }
}

function isReferenceScript(name: string): boolean {
  return /^redoc\.[\w-]+\.js$/.test(name)
}

/** Serves the site. Requests for other paths, and for the workflows of an account, are passed on. */
export function docsHandler(built: BuiltDocs): RequestHandler {
  const compressed = new WeakMap<SiteFile, Promise<Buffer>>()

  const compress = (file: SiteFile) => {
    const content = compressed.get(file) ?? promisify(gzip)(file.content)
    compressed.set(file, content)
    return content
  }

  return async function docs(request, response, next) {
    const [path = ''] = request.originalUrl.split('?')
    if (!isDocsPath(path)) return next()
    setDocsHeaders(response)
    if (request.method !== 'GET' && request.method !== 'HEAD') {
      return void response.status(405).set('Allow', 'GET, HEAD').type('text').send('Use GET or HEAD.')
    }
    // Relative, because a proxy may serve the host under a prefix.
    if (path === '/docs') return void response.redirect(308, 'docs/')
    const { site: files } = await built.get()
    const name = path.slice(root.length) || 'index.html'
    const notFound = files.get('404.html') as SiteFile
    const file = await built.find(name)
    if (file && file !== notFound) await send(request, response, file, compress)
    else await send(request, response.status(404), withRelativeLinks(name, notFound), compress)
  }
}

/** The error page with links relative to the requested path, which also work behind a prefix. */
function withRelativeLinks(name: string, page: SiteFile): SiteFile {
  const up = '../'.repeat(name.split('/').length - 1) || './'
  return { ...page, content: Buffer.from(Buffer.from(page.content).toString().replaceAll(`="${root}`, `="${up}`)) }
}

async function send(
  request: Request,
  response: Response,
  file: SiteFile,
  compress: (file: SiteFile) => Promise<Buffer>,
) {
  const { content, mediaType, digest, immutable, scriptHashes } = file
  const compresses = content.length > 1024 && request.acceptsEncodings('gzip', 'identity') === 'gzip'
  response.set({
    'Content-Type': mediaType,
    'Cache-Control': immutable ? 'public, max-age=31536000, immutable' : 'no-cache',
    // A compressed file is another representation (RFC 9110, section 8.8.3.3).
    ETag: compresses ? `"${digest}-gzip"` : `"${digest}"`,
    ...(compresses && { 'Content-Encoding': 'gzip' }),
    ...(scriptHashes.length > 0 && { 'Content-Security-Policy': contentSecurityPolicy(scriptHashes) }),
  })
  // `vary` adds to the header, because the mock also varies by Origin.
  response.vary('Accept-Encoding')
  if (request.fresh) return response.status(304).end()
  // Node omits the content in responses to HEAD.
  response.end(compresses ? await compress(file) : content)
}
