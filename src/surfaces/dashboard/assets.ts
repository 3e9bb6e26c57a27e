/** Style sheets and scripts, read at start and served under a path that contains their hash, so that browsers cache them. */
import { hash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { Router } from 'express'

/** Concatenated in this order: later style sheets override earlier ones. */
const styleSheets = ['base', 'layout', 'elements', 'forms', 'overview', 'runs', 'workflows']

const readAsset = (name: string) => readFileSync(new URL(`./assets/${name}`, import.meta.url))
const readPackageFile = (specifier: string, path = '') => readFileSync(new URL(path, import.meta.resolve(specifier)))

const files = {
  'pico.css': readPackageFile('@picocss/pico/css/pico.indigo.min.css'),
  'dashboard.css': Buffer.concat(styleSheets.map((name) => readAsset(`${name}.css`))),
  'idiomorph.js': readPackageFile('idiomorph'),
  'relative-time.js': readPackageFile('@github/relative-time-element', './bundle.js'),
  'dashboard.js': readAsset('dashboard.js'),
  'icon.svg': readAsset('icon.svg'),
}

const contents = new Map<string, Buffer>(Object.entries(files))

/** One version for all files, so that scripts can import each other by relative path. */
const version = hash('sha256', Buffer.concat([...contents.values()]), 'base64url').slice(0, 10)

export function assetPath(name: keyof typeof files): string {
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
