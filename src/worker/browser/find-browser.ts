/** Finds a Chromium to run: the one that is configured, an installed one, or the one that npm brings. */
import { execFile } from 'node:child_process'
import { accessSync, constants, statSync } from 'node:fs'
import { delimiter, isAbsolute, join } from 'node:path'
import { environmentWithoutSecrets } from '../../config.ts'
import { BrowserMissing, bundledBrowser } from './bundled.ts'

export { BrowserMissing }

export interface FoundBrowser {
  from: 'BROWSER_PATH' | 'system' | 'npm'
  executable: string
  /** What it says of itself, such as `Chromium 153.0.7000.1`. */
  version: string
  /** What the browser's process needs in its environment beside what it has anyway. */
  environment: Record<string, string>
}

/** Chrome first: where both are installed, Chromium may be the distribution's note that there is none. */
const installedNames = ['google-chrome', 'google-chrome-stable', 'chromium', 'chromium-browser']

/** An installed Chrome answers in 0.1 s; one that a busy machine reads from a slow disk takes longer. */
const answerMillisecondsMax = 10_000

/**
 * @param path BROWSER_PATH: no other is looked for when it is set.
 * @throws {BrowserMissing} when there is none that runs
 */
export async function findBrowser(path: string | undefined): Promise<FoundBrowser> {
  if (path) return configured(path)
  return (await installed()) ?? bundled()
}

/** The one that npm brings, whatever is installed. @throws {BrowserMissing} */
export async function bundled(): Promise<FoundBrowser> {
  const files = await bundledBrowser()
  try {
    return { from: 'npm', ...files, version: await versionOf(files.executable, files.environment) }
  } catch (error) {
    throw new BrowserMissing(
      `The Chromium that npm brings does not run here (${reason(error)}): install Google Chrome or Chromium, or set ` +
        'BROWSER_PATH to one.',
    )
  }
}

async function configured(path: string): Promise<FoundBrowser> {
  try {
    return { from: 'BROWSER_PATH', executable: path, version: await versionOf(path, {}), environment: {} }
  } catch (error) {
    throw new BrowserMissing(
      `BROWSER_PATH is "${path}", which does not run (${reason(error)}): set it to the executable of a Chrome or Chromium.`,
    )
  }
}

async function installed(): Promise<FoundBrowser | undefined> {
  for (const executable of installedNames.flatMap(onPath)) {
    try {
      return { from: 'system', executable, version: await versionOf(executable, {}), environment: {} }
    } catch {
      // A stub that only says which package to install, or an installation that is broken: the next may be well.
    }
  }
  return undefined
}

function onPath(name: string): string[] {
  const directories = (process.env.PATH ?? '').split(delimiter).filter(isAbsolute)
  return directories.map((directory) => join(directory, name)).filter(isExecutable)
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK)
    return statSync(path).isFile()
  } catch {
    return false
  }
}

/** @throws when it does not say a version in time: it is no browser, or lacks what it needs to run. */
function versionOf(executable: string, environment: Record<string, string>): Promise<string> {
  const env = { ...environmentWithoutSecrets(process.env), ...environment }
  const options = { env, timeout: answerMillisecondsMax, killSignal: 'SIGKILL' } as const
  return new Promise((resolve, reject) => {
    execFile(executable, ['--version'], options, (error, stdout, stderr) => {
      const [version] = /^.*\bChrom(e|ium)\b.*\d+\.\d+.*$/m.exec(stdout) ?? []
      if (!error && version) resolve(version.trim())
      else reject(new Error(unfitness(error, stderr)))
    })
  })
}

function unfitness(error: (Error & { killed?: boolean; code?: unknown }) | null, stderr: string): string {
  if (error?.killed) return `no answer to --version within ${answerMillisecondsMax / 1000} s`
  const said = stderr.trim().split('\n')[0]?.slice(0, 200)
  if (error && typeof error.code === 'number') return said || `exit code ${error.code}`
  if (error) return String(error.code ?? error.message)
  return 'it does not answer --version as a Chrome or Chromium does'
}

function reason(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
