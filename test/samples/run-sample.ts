/** Runs code samples unchanged, as their readers would: in a directory, with settings in the environment. */
import { type ChildProcess, fork, spawn } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Sample, SampleLanguage } from '../../src/surfaces/docs/contracts.ts'
import { pathWithCurl } from '../support/curl.ts'
import type { PythonReport, PythonRequest } from './python-process.ts'

/** A sample from its start to its end. */
export class RunningSample {
  /** Everything printed so far, including errors. */
  output = ''
  exitCode: number | undefined
  readonly #exit = Promise.withResolvers<number>()

  get exited(): Promise<number> {
    return this.#exit.promise
  }

  print(text: string): void {
    this.output += text
  }

  exit(exitCode: number): void {
    this.exitCode = exitCode
    this.#exit.resolve(exitCode)
  }

  fail(error: Error): void {
    this.#exit.reject(error)
  }
}

export interface SampleOptions {
  directory: string
  environment: Record<string, string>
}

const client = new URL('../../src/client/index.ts', import.meta.url).href

/** Starts the sample. `stopPython` ends the process that Python samples share. */
export function startSample({ lang, source }: Sample, options: SampleOptions): RunningSample {
  return starters[lang](source, options)
}

const starters: Record<SampleLanguage, (source: string, options: SampleOptions) => RunningSample> = {
  curl: (source, { directory, environment }) =>
    fromProcess(spawn('sh', ['-e', '-c', source], { cwd: directory, env: { ...environment, PATH: pathWithCurl } })),
  TypeScript: (source, { directory, environment }) => {
    const file = join(directory, 'sample.ts')
    writeFileSync(file, source.replace("'execution-service-client'", `'${client}'`))
    return fromProcess(spawn(process.execPath, [file], { cwd: directory, env: { ...process.env, ...environment } }))
  },
  Python: startPython,
}

function fromProcess(child: ChildProcess): RunningSample {
  const sample = new RunningSample()
  child.once('error', (error) => sample.fail(error))
  child.once('close', (code) => sample.exit(code ?? 1))
  for (const stream of [child.stdout, child.stderr]) {
    stream?.setEncoding('utf8').on('data', (part: string) => sample.print(part))
  }
  return sample
}

let python: ChildProcess | undefined

/** Starts loading the interpreter, which takes seconds. */
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

function startPython(source: string, { directory, environment }: SampleOptions): RunningSample {
  const child = preparePython()
  const sample = new RunningSample()
  const onMessage = (report: PythonReport) =>
    'output' in report ? sample.print(report.output) : sample.exit(report.exitCode)
  const onExit = () => sample.fail(new Error(`The Python interpreter exited. ${sample.output}`))
  child.on('message', onMessage).once('exit', onExit)
  void sample.exited.finally(() => child.off('message', onMessage).off('exit', onExit)).catch(() => undefined)
  child.send({ source, directory, environment } satisfies PythonRequest)
  return sample
}
