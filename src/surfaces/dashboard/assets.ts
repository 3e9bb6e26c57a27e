/** Style sheets and scripts, read at start, under addresses that change with their content, so that browsers keep them. */
import { hash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { Router } from 'express'

/** Our own style sheets, in the order in which they build on each other; browsers get them as one. */
const styles = ['base', 'frame', 'elements', 'forms', 'tables', 'overview', 'runs', 'timeline', 'workflows']

const own = (name: string) => readFileSync(new URL(`./assets/${name}`, import.meta.url))
const ofPackage = (specifier: string, path = '') => readFileSync(new URL(path, import.meta.resolve(specifier)))

const files = {
  'pico.css': ofPackage('@picocss/pico/css/pico.indigo.min.css'),
  'dashboard.css': Buffer.concat(styles.map((name) => own(`${name}.css`))),
  'idiomorph.js': ofPackage('idiomorph'),
  'relative-time.js': ofPackage('@github/relative-time-element', './bundle.js'),
  'dashboard.js': own('dashboard.js'),
  'icon.svg': own('icon.svg'),
}

export type Asset = keyof typeof files

const contents = new Map<string, Buffer>(Object.entries(files))

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
