/** Finds a Chromium: the configured one, an installed one, or the one in the npm package @sparticuz/chromium. */
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { accessSync, constants, lstatSync, mkdirSync, readFileSync, statSync } from 'node:fs'
import { createRequire } from 'node:module'
import { homedir, tmpdir } from 'node:os'
import { delimiter, dirname, extname, isAbsolute, join } from 'node:path'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { describeCauses } from '../../storage/error-causes.ts'

/** No browser can be started; the message says what to install or set. */
export class BrowserMissing extends Error {}

export interface FoundBrowser {
  from: 'BROWSER_PATH' | 'system' | 'npm'
  executable: string
  /** The reply to --version, such as `Chromium 153.0.7000.1`. */
  version: string
  /** Variables that the browser needs in addition to the inherited ones. */
  environment: Record<string, string>
}

/** Chrome first: on some distributions, `chromium` only prints which package to install. */
const installedNames = ['google-chrome', 'google-chrome-stable', 'chromium', 'chromium-browser']

/** An installed Chrome prints its version within 0.1 s; from a slow disk on a busy machine it takes longer. */
const versionMillisecondsMax = 10_000

/**
 * @param path BROWSER_PATH; if set, no other browser is tried.
 * @param inherited the variables that a browser inherits, without secrets.
 * @throws {BrowserMissing} when no browser runs.
 */
export async function findBrowser(path: string | undefined, inherited: NodeJS.ProcessEnv): Promise<FoundBrowser> {
  if (path) return findConfigured(path, inherited)
  return (await findInstalled(inherited)) ?? findBundled(inherited)
}

async function findConfigured(path: string, inherited: NodeJS.ProcessEnv): Promise<FoundBrowser> {
  try {
    return { from: 'BROWSER_PATH', executable: path, version: await readVersion(path, inherited), environment: {} }
  } catch (error) {
    throw new BrowserMissing(
      `BROWSER_PATH is "${path}", which does not run (${describeCauses(error)}): set it to the executable of Chrome or Chromium.`,
    )
  }
}

async function findInstalled(inherited: NodeJS.ProcessEnv): Promise<FoundBrowser | undefined> {
  for (const executable of installedNames.flatMap(findOnPath)) {
    try {
      return { from: 'system', executable, version: await readVersion(executable, inherited), environment: {} }
    } catch {
      // A stub or a broken installation.
    }
  }
  return undefined
}

/** The Chromium of the npm package, unpacked if needed, whatever is installed. @throws {BrowserMissing} */
export async function findBundled(inherited: NodeJS.ProcessEnv): Promise<FoundBrowser> {
  const found = findPackage()
  if (!found) {
    throw new BrowserMissing(
      `No browser is installed: ${hasPackage ? 'run `npx execution-service browser install`, ' : ''}install Google Chrome or ` +
        'Chromium, or set BROWSER_PATH to its executable or BROWSER_CDP_URL to the address of a running one.',
    )
  }
  const directory = await unpack(found)
  const executable = join(directory, 'chromium')
  const { LD_LIBRARY_PATH } = process.env
  // The package's own libraries even where the system has them, so that it behaves the same on all machines.
  const libraries = join(directory, 'al2023/lib')
  const environment = {
    LD_LIBRARY_PATH: LD_LIBRARY_PATH ? `${libraries}:${LD_LIBRARY_PATH}` : libraries,
    FONTCONFIG_FILE: join(directory, 'fonts.conf'),
  }
  try {
    return {
      from: 'npm',
      executable,
      environment,
      version: await readVersion(executable, { ...inherited, ...environment }),
    }
  } catch (error) {
    throw new BrowserMissing(
      `The Chromium installed by npm does not run here (${describeCauses(error)}): install Google Chrome or Chromium, or set ` +
        'BROWSER_PATH to one.',
    )
  }
}

export const browserPackage = '@sparticuz/chromium'

/** Whether the package has a browser for this machine. */
export const hasPackage = process.platform === 'linux' && process.arch === 'x64'

/** Where `browser install` installs the package, for all projects of a user. */
export const userPackages = join(process.env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'execution-service/browser')

interface ChromiumPackage {
  entry: string
  version: string
}

/** Undefined if npm has not installed the package, or if it has no browser for this machine. */
function findPackage(): ChromiumPackage | undefined {
  if (!hasPackage) return undefined
  for (const from of [import.meta.url, join(userPackages, 'package.json')]) {
    try {
      const entry = createRequire(from).resolve(browserPackage)
      const { version } = JSON.parse(readFileSync(join(dirname(entry), '../package.json'), 'utf8'))
      return { entry, version }
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'MODULE_NOT_FOUND') throw error
    }
  }
  return undefined
}

/** The published package has compiled modules. */
const unpackModule = fileURLToPath(new URL(`./unpack-chromium${extname(import.meta.url)}`, import.meta.url))
const cacheDirectory = fileURLToPath(new URL('../../../node_modules/.cache/chromium', import.meta.url))
/** For a user who may not write to the checkout. */
const userDirectory = join(tmpdir(), `execution-service-chromium-${process.getuid?.()}`)

/** Returns the directory of the unpacked files: about 220 MB, reused until the package changes. */
async function unpack({ entry, version: packageVersion }: ChromiumPackage): Promise<string> {
  const candidates = [cacheDirectory, userDirectory].map((directory) => join(directory, packageVersion))
  const unpacked = candidates.find((candidate) => isAccessible(join(candidate, 'chromium'), constants.X_OK))
  if (unpacked) return unpacked
  const target = candidates.find(canCreate)
  if (!target) throw new Error(`Chromium cannot be unpacked: ${candidates.join(' and ')} are not writable.`)
  const child = spawn(process.execPath, [unpackModule, entry, target], { stdio: ['ignore', 'ignore', 'pipe'] })
  const [output, [code]] = await Promise.all([text(child.stderr), once(child, 'exit')])
  if (code !== 0) throw new Error(`Chromium could not be unpacked to ${target}:\n${output}`)
  return target
}

function canCreate(path: string): boolean {
  const directory = dirname(path)
  try {
    mkdirSync(directory, { recursive: true, mode: directory === userDirectory ? 0o700 : 0o755 })
  } catch {
    return false
  }
  return isAccessible(directory, constants.W_OK)
}

function isAccessible(path: string, mode: number): boolean {
  try {
    accessSync(path, mode)
    // In a shared directory, another user may have created the directory, with a program for us to run.
    return !path.startsWith(userDirectory) || lstatSync(userDirectory).uid === process.getuid?.()
  } catch {
    return false
  }
}

function findOnPath(name: string): string[] {
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

/** @throws when it prints no version in time: it is no browser, or lacks something that it needs to run. */
function readVersion(executable: string, env: NodeJS.ProcessEnv): Promise<string> {
  const options = { env, timeout: versionMillisecondsMax, killSignal: 'SIGKILL' } as const
  return new Promise((resolve, reject) => {
    execFile(executable, ['--version'], options, (error, stdout, stderr) => {
      const [version] = /^.*\bChrom(e|ium)\b.*\d+\.\d+.*$/m.exec(stdout) ?? []
      if (!error && version) resolve(version.trim())
      else reject(new Error(describeFailure(error, stdout, stderr)))
    })
  })
}

type VersionError = Error & { killed?: boolean; code?: unknown }

function describeFailure(error: VersionError | null, stdout: string, stderr: string): string {
  if (error?.killed) return `no reply to --version within ${versionMillisecondsMax / 1000} s`
  const firstLine = stderr.trim().split('\n')[0]?.slice(0, 200)
  if (error && typeof error.code === 'number') return firstLine || `exit code ${error.code}`
  if (error) return String(error.code ?? error.message)
  return `its reply to --version, ${JSON.stringify(stdout.slice(0, 200))}, is not that of Chrome or Chromium`
}
