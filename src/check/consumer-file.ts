/** Reads the file that says what one use of a program is, and how to see that its work was done. */
import { readFile } from 'node:fs/promises'
import { parse } from 'yaml'
import { compileForm } from '../simulator/check-form.ts'
import { CheckError } from './check-consumer.ts'

export interface ConsumerFile {
  /** The request that makes a running program use the service; without it, each use starts the command. */
  use?: { url: string; method?: string; body?: unknown }
  done?: {
    /** A regular expression that the output of the command matches. */
    output?: string
    /** Says of a run, in place of `{runId}`, what was done. */
    url?: string
    /** A regular expression that its body matches; its first group says how often the work was done. */
    matches?: string
  }
  limitSeconds?: number
}

const text = { type: 'string', minLength: 1 }
const schema = {
  type: 'object',
  additionalProperties: false,
  properties: {
    use: {
      ...{ type: 'object', additionalProperties: false, required: ['url'] },
      properties: { url: text, method: text, body: {} },
    },
    done: {
      ...{ type: 'object', additionalProperties: false, minProperties: 1 },
      properties: { output: text, url: text, matches: text },
    },
    limitSeconds: { type: 'number', minimum: 1, maximum: 600 },
  },
}

/** @throws {CheckError} that names the first mistake. */
export async function readConsumerFile(path: string): Promise<ConsumerFile> {
  let content: unknown
  try {
    content = parse(await readFile(path, 'utf8'))
  } catch (cause) {
    throw new CheckError(`${path} cannot be read: ${(cause as Error).message}`, { cause })
  }
  const [mistake] = compileForm(schema)(content)
  if (mistake) throw new CheckError(`${path}: ${mistake.path.join('.') || 'the file'} ${mistake.detail}.`)
  const file = content as ConsumerFile
  for (const name of ['output', 'matches'] as const) checkPattern(path, name, file.done?.[name])
  if (file.done?.matches && !file.done.url) throw new CheckError(`${path}: done.matches needs done.url.`)
  return file
}

function checkPattern(path: string, name: string, pattern = ''): void {
  try {
    new RegExp(pattern)
  } catch (cause) {
    throw new CheckError(`${path}: done.${name} is no regular expression: ${(cause as Error).message}.`, { cause })
  }
}

/** How often the work for a run was done. */
export async function readDone(
  { url = '', matches }: NonNullable<ConsumerFile['done']>,
  runId: string,
): Promise<number> {
  const response = await fetch(url.replaceAll('{runId}', runId))
  const body = await response.text()
  if (!response.ok) return 0
  const found = matches === undefined ? [''] : new RegExp(matches).exec(body)
  return found ? Number(found[1] ?? 1) : 0
}
