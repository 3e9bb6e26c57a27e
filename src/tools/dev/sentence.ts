/** What went wrong, as one line for the person who is writing the code. */
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('../../..', import.meta.url))

/** The message; of an error of the language with its place, if it has one in the code of this repository. */
export function sentenceOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  const [message = ''] = error.message.replaceAll(root, '').split('\n')
  if (error.name === 'Error') return message
  // Each part begins with a path below the root.
  const parts = error.stack?.split(root).slice(1) ?? []
  const places = parts.map((part) => /^(?!node_modules\/)([^\s:()?]+)(?:\?\w+)?:(\d+)/.exec(part))
  const place = places.find((found) => found !== null)
  return `${place ? `${place[1]}:${place[2]}: ` : ''}${error.name}: ${message}`
}
