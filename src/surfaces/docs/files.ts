/** The site's files, and the names of those that browsers may keep for good. */
import { hash } from 'node:crypto'

export interface SiteFile {
  mediaType: string
  content: Uint8Array
  /** Of the content. */
  digest: string
  /** Whether the name changes with the content. */
  lasting: boolean
}

/** By their paths below the site's root; all of them are in one folder. */
export type Site = Map<string, SiteFile>

const mediaTypes: Record<string, string> = {
  html: 'text/html; charset=utf-8',
  css: 'text/css; charset=utf-8',
  js: 'text/javascript; charset=utf-8',
  json: 'application/json',
  yaml: 'application/yaml',
  md: 'text/markdown; charset=utf-8',
  txt: 'text/plain; charset=utf-8',
  svg: 'image/svg+xml',
}

export function siteFile(name: string, content: string | Buffer, lasting = false): SiteFile {
  const bytes = Buffer.from(content)
  const mediaType = mediaTypes[name.slice(name.lastIndexOf('.') + 1)]
  if (!mediaType) throw new Error(`The docs have no media type for ${name}.`)
  return { mediaType, content: bytes, digest: digestOf(bytes), lasting }
}

function digestOf(content: Buffer): string {
  return hash('sha256', content, 'base64url').slice(0, 12)
}

/** Adds the file under a name that changes with its content, and tells that name. */
export function addLasting(site: Site, name: string, content: string | Buffer): string {
  const file = siteFile(name, content, true)
  const dot = name.lastIndexOf('.')
  const lastingName = `${name.slice(0, dot)}.${file.digest}${name.slice(dot)}`
  site.set(lastingName, file)
  return lastingName
}
