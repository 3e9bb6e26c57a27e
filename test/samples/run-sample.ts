/** Runs a sample as whoever pastes it would: in a process, in a folder of its own, with its settings in the environment. */
import { type ChildProcess, fork, spawn } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Sample, SampleLanguage } from '../../src/surfaces/docs/contracts.ts'
import { pathWithCurl } from '../support/curl.ts'
import type { PythonReport, PythonRequest } from './python-process.ts'

/** A sample from its start to its end. */
export class RunningSample {
  /** What it has printed so far, errors too. */
  output = ''
  exitCode: number | undefined
  readonly #end = Promise.withResolvers<number>()

  get ended(): Promise<number> {
    return this.#end.promise
  }

  print(text: string): void {
    this.output += text
  }

  end(exitCode: number): void {
    this.exitCode = exitCode
    this.#end.resolve(exitCode)
  }

  fail(error: Error): void {
    this.#end.reject(error)
  }
}

export interface Place {
  directory: string
  environment: Record<string, string>
}

const client = new URL('../../src/client/index.ts', import.meta.url).href

/** Starts the sample; Python's processes end with `stopPython`. */
export function startSample({ lang, source }: Sample, place: Place): RunningSample {
  return starters[lang](source, place)
}

const starters: Record<SampleLanguage, (source: string, place: Place) => RunningSample> = {
  curl: (source, place) => {
    const environment = { ...place.environment, PATH: pathWithCurl }
    return followed(spawn('sh', ['-e', '-c', source], { cwd: place.directory, env: environment }))
  },
  TypeScript: (source, place) => {
    const file = join(place.directory, 'sample.ts')
    writeFileSync(file, source.replace("'execution-service-client'", `'${client}'`))
    const environment = { ...process.env, ...place.environment }
    return followed(spawn(process.execPath, [file], { cwd: place.directory, env: environment }))
  },
  Python: startPython,
}

function followed(child: ChildProcess): RunningSample {
  const sample = new RunningSample()
  child.once('error', (error) => sample.fail(error))
  child.once('close', (code) => sample.end(code ?? 1))
  for (const stream of [child.stdout, child.stderr]) {
    stream?.setEncoding('utf8').on('data', (part: string) => sample.print(part))
  }
  return sample
}

let python: ChildProcess | undefined

/** Starts the interpreter, so that it loads while something else is done. */
export function preparePython(): ChildProcess {
  python ??= fork(fileURLToPath(new URL('./python-process.ts', import.meta.url)), {
    execArgv: ['--experimental-wasm-jspi', '--no-warnings'],
  })
  return python
}

export async function stopPython(): Promise<void> {
  const child = python
  python = undefined
  if (!child || child.exitCode !== null) return
  await new Promise((resolve) => child.once('exit', resolve).kill())
}

function startPython(source: string, { directory, environment }: Place): RunningSample {
  const child = preparePython()
  const sample = new RunningSample()
  const hear = (report: PythonReport) =>
    'output' in report ? sample.print(report.output) : sample.end(report.exitCode)
  const fail = () => sample.fail(new Error(`The Python interpreter has ended. ${sample.output}`))
  child.on('message', hear).once('exit', fail)
  void sample.ended.finally(() => child.off('message', hear).off('exit', fail)).catch(() => undefined)
  child.send({ source, directory, environment } satisfies PythonRequest)
  return sample
}
