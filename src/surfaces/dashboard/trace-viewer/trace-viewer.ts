/**
 * Playwright's trace viewer, from its npm package, for the traces of runs. It shows content of foreign sites, so its policy
 * confines it to its own path: neither its pages nor its service worker can request or frame anything else of the dashboard.
 */
import { hash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import express, { type Request, type Response, Router } from 'express'
import { readSized } from '../../../domain/sized.ts'
import type { Dependencies } from '../dependencies.ts'
import { orNotFound, type StreamHandler } from '../page-handler.ts'

const prefix = '/trace-viewer'
const directory = fileURLToPath(new URL('lib/vite/traceViewer/', import.meta.resolve('playwright-core/package.json')))
const serviceWorker = fileURLToPath(new URL('./service-worker.js', import.meta.url))

export function traceViewerPath(runId: string, name: string): string {
  return `${prefix}/index.html?trace=${encodeURIComponent(`${prefix}/runs/${runId}/${name}`)}`
}

/** The viewer's files, which need no session. */
export function traceViewer({ publicUrl }: Pick<Dependencies, 'publicUrl'>): Router {
  const publicHost = publicUrl && new URL(publicUrl).host
  const setHeaders = (response: Response) => {
    const host = publicHost ?? response.req.headers.host ?? ''
    response.set({
      'Content-Security-Policy': policy(host),
      'Cross-Origin-Opener-Policy': 'same-origin',
      'Cross-Origin-Resource-Policy': 'same-origin',
      'Referrer-Policy': 'no-referrer',
      'X-Content-Type-Options': 'nosniff',
      'Cache-Control': 'no-cache',
    })
  }
  const send = (file: string) => (_request: Request, response: Response) => {
    setHeaders(response)
    response.sendFile(file)
  }
  const router = Router()
  router.get(`${prefix}/sw.bundle.js`, send(serviceWorker))
  router.get(`${prefix}/playwright.sw.js`, send(`${directory}sw.bundle.js`))
  router.use(prefix, express.static(directory, { index: false, redirect: false, setHeaders }))
  return router
}

/** Inline scripts of the viewer's page, which a policy allows by their hashes. */
const scriptHashes = readFileSync(`${directory}index.html`, 'utf8')
  .split('<script>')
  .slice(1)
  .map((text) => text.slice(0, text.indexOf('</script>')))
  .map((script) => `'sha256-${hash('sha256', script, 'base64')}'`)

function policy(host: string): string {
  // A source with a path: other pages of this origin are not included. Browsers accept no IPv6 address there.
  const own = /^[\w.-]+(:\d+)?$/.test(host) ? `${host}${prefix}/` : "'self'"
  return [
    "default-src 'none'",
    `script-src ${own} ${scriptHashes.join(' ')}`,
    // The viewer and its editor set styles of elements.
    `style-src ${own} 'unsafe-inline'`,
    `img-src ${own} data: blob:`,
    `font-src ${own} data:`,
    `connect-src ${own}`,
    `worker-src ${own}`,
    `manifest-src ${own}`,
    // An action without a snapshot shows an empty `data:` page, which has no origin.
    `frame-src ${own} data:`,
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join('; ')
}

export const sendTrace: StreamHandler = async ({ account, params, reserve }, { artifacts }, _request, response) => {
  const { id = '', trace = '' } = params
  const found = orNotFound(await artifacts.find(account.id, id, trace))
  const artifact = orNotFound(await readSized(reserve, found))
  orNotFound(artifact.kind === 'evidence' && artifact.mediaType === 'application/zip')
  response.attachment(artifact.name).type('application/zip').send(Buffer.from(artifact.content))
}
