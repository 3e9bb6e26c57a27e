/** Style sheets and scripts, read at start, under addresses that change with their content, so that browsers keep them. */
import { hash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { Router } from 'express'

const files = {
  'pico.css': import.meta.resolve('@picocss/pico/css/pico.indigo.min.css'),
  'idiomorph.js': import.meta.resolve('idiomorph'),
  'relative-time.js': new URL('./bundle.js', import.meta.resolve('@github/relative-time-element')).href,
  'frame.css': new URL('./assets/frame.css', import.meta.url).href,
  'elements.css': new URL('./assets/elements.css', import.meta.url).href,
  'forms.css': new URL('./assets/forms.css', import.meta.url).href,
  'overview.css': new URL('./assets/overview.css', import.meta.url).href,
  'runs.css': new URL('./assets/runs.css', import.meta.url).href,
  'tables.css': new URL('./assets/tables.css', import.meta.url).href,
  'dashboard.js': new URL('./assets/dashboard.js', import.meta.url).href,
  'icon.svg': new URL('./assets/icon.svg', import.meta.url).href,
}

export type Asset = keyof typeof files

const contents = new Map(Object.entries(files).map(([name, url]) => [name, readFileSync(fileURLToPath(url))] as const))

/** One for all of them, so that scripts can import each other by name. */
const version = hash('sha256', Buffer.concat([...contents.values()]), 'base64url').slice(0, 10)

/** Where the asset is served. */
export function assetPath(name: Asset): string {
  return `/assets/${version}/${name}`
}

export function assetRouter(): Router {
  const router = Router()
  router.get(`/assets/${version}/:name`, (request, response, next) => {
    const content = contents.get(request.params.name)
    if (!content) return next()
    response.set({ 'Cache-Control': 'public, max-age=31536000, immutable', 'X-Content-Type-Options': 'nosniff' })
    response.type(request.params.name).send(content)
  })
  return router
}
