/** Style sheets and scripts, read at start and served under a path that contains their hash, so that browsers cache them. */
import { hash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { Router } from 'express'
import { compress, compresses } from '../../contract/representations.ts'
import type { Tone } from './html.ts'

/** Concatenated in this order: later style sheets override earlier ones. */
const styleSheets = [
  'base',
  'layout',
  'elements',
  'forms',
  'command-menu',
  'overview',
  'runs',
  'live-view',
  'workflows',
]

const readAsset = (name: string) => readFileSync(new URL(`./assets/${name}`, import.meta.url))
const readPackageFile = (specifier: string, path = '') => readFileSync(new URL(path, import.meta.resolve(specifier)))

const files = {
  'pico.css': readPackageFile('@picocss/pico/css/pico.indigo.min.css'),
  'dashboard.css': Buffer.concat(styleSheets.map((name) => readAsset(`${name}.css`))),
  'idiomorph.js': readPackageFile('idiomorph'),
  'relative-time.js': readPackageFile('@github/relative-time-element', './bundle.js'),
  'theme.js': readAsset('../../docs/assets/theme.js'),
  'dashboard.js': readAsset('dashboard.js'),
  'command-menu.js': readAsset('command-menu.js'),
  'live-view.js': readAsset('live-view.js'),
  'remote-input.js': readAsset('remote-input.js'),
  'icon.svg': readAsset('icon.svg'),
}

/** For the icon of a tab, which browsers show on light and dark backgrounds. */
const toneColours: Record<Tone, string> = {
  good: '#1a9d5c',
  bad: '#d92d3a',
  busy: '#4a5ce8',
  waiting: '#d99a1c',
  quiet: '#7b8494',
  warning: '#d99a1c',
}

/** The icon with a dot of the colour. */
function iconWithDot(colour: string): Buffer {
  const dot = `<circle cx="23" cy="23" r="8.5" fill="${colour}" stroke="#fff" stroke-width="2.5"/></svg>`
  return Buffer.from(files['icon.svg'].toString().trim().replace('</svg>', dot))
}

const icons = Object.entries(toneColours).map(([tone, colour]) => [`icon-${tone}.svg`, iconWithDot(colour)] as const)

const contents = new Map<string, Buffer>([...Object.entries(files), ...icons])

/** One version for all files, so that scripts can import each other by relative path. */
const version = hash('sha256', Buffer.concat([...contents.values()]), 'base64url').slice(0, 10)

export function assetPath(name: keyof typeof files | `icon-${Tone}.svg`): string {
  return `/assets/${version}/${name}`
}

export function assetRouter(): Router {
  const router = Router()
  const compressed = new Map<string, Promise<Buffer>>()
  router.get(`/assets/${version}/:name`, async (request, response, next) => {
    const { name } = request.params
    const content = contents.get(name)
    if (!content) return next()
    response.set({ 'Cache-Control': 'public, max-age=31536000, immutable', 'X-Content-Type-Options': 'nosniff' })
    response.type(name)
    if (!compresses(response, content.length)) return void response.send(content)
    if (!compressed.has(name)) compressed.set(name, compress(content, {}))
    response.send(await compressed.get(name))
  })
  return router
}
