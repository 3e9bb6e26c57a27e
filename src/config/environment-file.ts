/** The environment file of a unit, as systemd.exec(5) describes `EnvironmentFile`, apart from values of several lines. */
import { readFileSync } from 'node:fs'
import { ConfigError } from './setting-kinds.ts'

/** Values by names, of which the last one counts. @throws {ConfigError} */
export function readEnvironmentFile(path: string): Record<string, string> {
  const lines = readText(path).split('\n')
  const entries = lines.flatMap((line, index) => {
    if (/^\s*([#;]|$)/.test(line)) return []
    const [, name, value] = /^\s*([A-Za-z_]\w*)\s*=\s*(.*?)\s*$/.exec(line) ?? []
    const text = value === undefined ? undefined : unquote(value)
    if (name !== undefined && text !== undefined) return [[name, text]]
    // Not the line, which may contain a password.
    throw new ConfigError(`Line ${index + 1} of ${path} is invalid: write NAME=VALUE, with all quotes closed.`)
  })
  return Object.fromEntries(entries)
}

function readText(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    throw new ConfigError(
      `${path} cannot be read (${(error as Error).message}): pass a file that this user can read to --env-file.`,
    )
  }
}

const quoted = /^(?:"((?:[^"\\]|\\.)*)"|'([^']*)')$/

/** `undefined` for a quote that is not closed. */
function unquote(value: string): string | undefined {
  const [whole, double, single] = quoted.exec(value) ?? []
  if (whole === undefined) return /^["']|\\$/.test(value) ? undefined : value.replaceAll(/\\(.)/g, '$1')
  return single ?? double?.replaceAll(/\\(["\\$`])/g, '$1')
}
