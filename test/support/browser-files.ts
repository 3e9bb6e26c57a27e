/** Where the tests' Chromium is: an installed one that CHROMIUM_PATH names, or else the one that npm brings, unpacked. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { accessSync, constants, lstatSync, mkdirSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'

export interface BrowserFiles {
  executable: string
  /** What the browser's process needs in its environment. */
  environment: Record<string, string>
}

export async function browserFiles(): Promise<BrowserFiles> {
  const { CHROMIUM_PATH, LD_LIBRARY_PATH } = process.env
  if (CHROMIUM_PATH) return { executable: CHROMIUM_PATH, environment: {} }
  if (process.platform !== 'linux' || process.arch !== 'x64') {
    throw new Error('npm brings a Chromium for Linux on x64 alone. Name an installed one in CHROMIUM_PATH.')
  }
  const place = await unpacked()
  // Always the package's libraries, also where the system has its own, so that all machines test with the same.
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
async function unpacked(): Promise<string> {
  const places = [besideThePackage, ofThisUser].map((directory) => join(directory, packageVersion()))
  const found = places.find((place) => isAllowed(join(place, 'chromium'), constants.X_OK))
  if (found) return found
  const place = places.find(canBeMade)
  if (!place) throw new Error(`Chromium cannot be unpacked: ${places.join(' and ')} cannot be written.`)
  const child = spawn(process.execPath, [unpacking, place], { stdio: ['ignore', 'ignore', 'pipe'] })
  const [complaint, [code]] = await Promise.all([text(child.stderr), once(child, 'exit')])
  if (code !== 0) throw new Error(`Chromium could not be unpacked to ${place}:\n${complaint}`)
  return place
}

const unpacking = fileURLToPath(new URL('./browser-unpacking.ts', import.meta.url))
const besideThePackage = fileURLToPath(new URL('../../node_modules/.cache/chromium', import.meta.url))
/** For whoever may not write to the checkout. */
const ofThisUser = join(tmpdir(), `execution-service-chromium-${process.getuid?.()}`)

function packageVersion(): string {
  const entry = createRequire(import.meta.url).resolve('@sparticuz/chromium')
  return JSON.parse(readFileSync(join(dirname(entry), '../package.json'), 'utf8')).version
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
