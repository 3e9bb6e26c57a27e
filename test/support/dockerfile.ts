/** Reads the Dockerfile and .dockerignore: the instructions of each stage, and the files of the build context. */
import { existsSync, globSync, readFileSync } from 'node:fs'
import { matchesGlob } from 'node:path'

export interface Instruction {
  keyword: string
  /** Options such as `--from=package`. */
  flags: Record<string, string>
  /** What follows the options. */
  rest: string
}

export interface Stage {
  /** An earlier stage or an image. */
  base: string
  /** The last stage may have none. */
  name: string | undefined
  instructions: Instruction[]
}

export function readStages(file = 'Dockerfile'): Stage[] {
  const stages: Stage[] = []
  const lines = readFileSync(file, 'utf8')
    .replaceAll(/^#.*\n/gm, '')
    .replaceAll(/\\\n/g, ' ')
    .split('\n')
  for (const line of lines.filter((each) => each.trim() !== '')) {
    const instruction = readInstruction(line)
    if (instruction.keyword !== 'FROM') {
      stages.at(-1)?.instructions.push(instruction)
      continue
    }
    const [base = '', , name] = instruction.rest.split(/ +/)
    stages.push({ base, name, instructions: [] })
  }
  return stages
}

function readInstruction(line: string): Instruction {
  const [, keyword, options = '', rest = ''] = /^([A-Z]+) +((?:--\S+ +)*)(.*)$/.exec(line) ?? []
  if (!keyword) throw new Error(`Not an instruction of a Dockerfile: ${line}`)
  const flags = [...options.matchAll(/--([\w-]+)=(\S+)/g)].map(([, name, value]) => [name, value])
  return { keyword, flags: Object.fromEntries(flags), rest: rest.trim() }
}

/** Whether .dockerignore includes the file in the build context; the last matching line decides. */
export function isInBuildContext(file: string): boolean {
  const last = ignoreLines().findLast((line) => {
    const path = line.replace(/^!/, '')
    return path === '*' || isWithin(file, path) || (path.includes('*') && matchesGlob(file, path))
  })
  return last?.startsWith('!') ?? true
}

function ignoreLines(): string[] {
  return readFileSync('.dockerignore', 'utf8')
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('#'))
}

export function isWithin(file: string, path: string): boolean {
  return path === '.' || file === path || file.startsWith(`${path}/`)
}

/** The files and directories that .dockerignore includes; files below such a directory may be excluded again. */
export function contextPaths(): string[] {
  const included = ignoreLines().flatMap((line) => (line.startsWith('!') ? [line.slice(1)] : []))
  return included.flatMap((path) => (path.includes('*') ? globSync(path) : path)).filter((path) => existsSync(path))
}
