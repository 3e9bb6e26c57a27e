/** Reduces the stack of an error to the author's source: no frames of Node.js, of packages or of the service. */
import { relative, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'

/** A frame of V8: `at run (file:///srv/workflows/a.ts:1:2)`, `at async run (/srv/a.ts:1:2)`, `at /srv/a.ts:1:2`. */
const framePattern = /^\s+at (?:(.*) \()?((?:async )?)((?:file:\/\/)?\/[^()]*?)(?:\?[^():]*)?:(\d+):(\d+)\)?$/

const serviceSource = fileURLToPath(new URL('..', import.meta.url))

/**
 * The frames in the author's source, such as `at run (greet.ts:12:3)`, innermost first.
 *
 * @param root the directory of workflows, to which paths are relative.
 */
export function authorFrames({ name, message, stack }: Error, root: string): string[] {
  if (typeof stack !== 'string') return []
  // A message of several lines may contain lines that look like frames.
  const header = `${name}: ${message}`
  const frames = stack.startsWith(header) ? stack.slice(header.length) : stack
  return frames.split('\n').flatMap((line) => {
    const [, called, async = '', location = '', row, column] = framePattern.exec(line) ?? []
    const path = location && toPath(location)
    if (!path || path.startsWith(serviceSource) || path.includes('/node_modules/')) return []
    const place = `${relative(resolve(root), path)}:${row}:${column}`
    // V8 names the receiver of a method, which says nothing for a workflow's definition.
    return called ? [`at ${called.replace(/\bObject\./, '')} (${place})`] : [`at ${async}${place}`]
  })
}

function toPath(location: string): string {
  if (!location.startsWith('file://')) return location
  try {
    return fileURLToPath(location)
  } catch {
    return ''
  }
}
