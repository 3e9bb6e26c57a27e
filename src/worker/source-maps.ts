/** Makes stacks of errors name the author's source. Runs in executors. */
import { readFileSync, statSync } from 'node:fs'
import { SourceMap } from 'node:module'
import { dirname, resolve } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'

/** A parsed map takes about ten times its size. The positions of larger ones stay those of the bundle. */
const mapBytesMax = 4 * 1024 * 1024

/**
 * A map is read when the stack of an error is: `node --enable-source-maps` reads all maps with their modules, which
 * added 16 ms to the start of an executor for a bundle of 250 kB. Frames of the service are left out.
 *
 * @param directory that of the bundles. Paths of sources begin with it, wherever they were deployed from.
 */
export function mapStacks(directory: string): void {
  const bundles = `${pathToFileURL(directory).href}/`
  const service = new URL('../', import.meta.url).href
  const maps = new Map<string, SourceMap | undefined>()
  const originOf = (url: string, line: number, column: number): string | undefined => {
    const path = `${fileURLToPath(url)}.map`
    if (!maps.has(url)) maps.set(url, readMap(path))
    const origin = maps.get(url)?.findOrigin(line, column)
    if (!origin || !('fileName' in origin) || typeof origin.fileName !== 'string') return undefined
    return `${resolve(dirname(path), origin.fileName)}:${origin.lineNumber}:${origin.columnNumber}`
  }
  const describe = (frame: NodeJS.CallSite): string => {
    const text = String(frame)
    const [url, line, column] = [frame.getFileName(), frame.getLineNumber(), frame.getColumnNumber()]
    if (!url?.startsWith(bundles) || line === null || column === null) return text
    const origin = originOf(url, line, column)
    return origin === undefined ? text : text.replace(`${url}:${line}:${column}`, () => origin)
  }
  Error.prepareStackTrace = (error, frames) => {
    const own = frames.filter((frame) => !frame.getFileName()?.startsWith(service))
    // As Node.js does by default, this throws if a getter does.
    return [Error.prototype.toString.call(error), ...own.map((frame) => `    at ${describe(frame)}`)].join('\n')
  }
}

function readMap(path: string): SourceMap | undefined {
  try {
    if (statSync(path).size > mapBytesMax) return undefined
    return new SourceMap(JSON.parse(readFileSync(path, 'utf8')))
  } catch {
    // The module has no map.
    return undefined
  }
}
