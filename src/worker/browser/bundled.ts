/** The Chromium that the package @sparticuz/chromium brings: where its unpacked files are, and what they need to run. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { accessSync, constants, lstatSync, mkdirSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'

/** There is no browser that could be started; the message says what to install or set. */
export class BrowserMissing extends Error {}

export interface BrowserFiles {
  executable: string
  /** What the browser's process needs in its environment. */
  environment: Record<string, string>
}

/** @throws {BrowserMissing} where the package has no browser for this machine, or is not installed. */
export async function bundledBrowser(): Promise<BrowserFiles> {
  const version = packageVersion()
  if (!version) {
    throw new BrowserMissing(
      'There is no browser: install Google Chrome or Chromium, or set BROWSER_PATH to its executable or BROWSER_CDP_URL ' +
        'to the address of one that runs.',
    )
  }
  const place = await unpacked(version)
  const { LD_LIBRARY_PATH } = process.env
  // Always the package's libraries, also where the system has its own, so that it behaves the same on all machines.
  const libraries = join(place, 'al2023/lib')
  return {
    executable: join(place, 'chromium'),
    environment: {
      LD_LIBRARY_PATH: LD_LIBRARY_PATH ? `${libraries}:${LD_LIBRARY_PATH}` : libraries,
      FONTCONFIG_FILE: join(place, 'fonts.conf'),
    },
  }
}

/** The directory with the unpacked files. It takes about 220 MB, and is used again until the package changes. */
async function unpacked(version: string): Promise<string> {
  const places = [besideThePackage, ofThisUser].map((directory) => join(directory, version))
  const found = places.find((place) => isAllowed(join(place, 'chromium'), constants.X_OK))
  if (found) return found
  const place = places.find(canBeMade)
  if (!place) throw new Error(`Chromium cannot be unpacked: ${places.join(' and ')} cannot be written.`)
  const child = spawn(process.execPath, [unpacking, place], { stdio: ['ignore', 'ignore', 'pipe'] })
  const [complaint, [code]] = await Promise.all([text(child.stderr), once(child, 'exit')])
  if (code !== 0) throw new Error(`Chromium could not be unpacked to ${place}:\n${complaint}`)
  return place
}

const unpacking = fileURLToPath(new URL('./unpacking.ts', import.meta.url))
const besideThePackage = fileURLToPath(new URL('../../../node_modules/.cache/chromium', import.meta.url))
/** For whoever may not write to the checkout. */
const ofThisUser = join(tmpdir(), `execution-service-chromium-${process.getuid?.()}`)

/** Of the installed package; undefined where npm left it out, or where it has no browser for the machine. */
function packageVersion(): string | undefined {
  if (process.platform !== 'linux' || process.arch !== 'x64') return undefined
  try {
    const entry = createRequire(import.meta.url).resolve('@sparticuz/chromium')
    return JSON.parse(readFileSync(join(dirname(entry), '../package.json'), 'utf8')).version
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'MODULE_NOT_FOUND') return undefined
    throw error
  }
}

function canBeMade(place: string): boolean {
  const directory = dirname(place)
  try {
    mkdirSync(directory, { recursive: true, mode: directory === ofThisUser ? 0o700 : 0o755 })
  } catch {
    return false
  }
  return isAllowed(directory, constants.W_OK)
}

function isAllowed(path: string, mode: number): boolean {
  try {
    accessSync(path, mode)
    // Anyone can make a directory of that name in a shared one, and with it a program for others to run.
    return !path.startsWith(ofThisUser) || lstatSync(ofThisUser).uid === process.getuid?.()
  } catch {
    return false
  }
}
