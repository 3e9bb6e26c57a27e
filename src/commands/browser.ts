/** `browser install`: installs a Chromium from npm for the user, where every project finds it. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { environmentWithoutSecrets } from '../config/config.ts'
import {
  BrowserMissing,
  browserPackage,
  findBrowser,
  hasPackage,
  userPackages,
} from '../worker/browser/find-browser.ts'
import { CommandError, print } from './output.ts'
import { readManifest } from './project/manifest.ts'

/** @throws {CommandError} when npm fails, or has no browser for this machine. */
export async function installBrowser(): Promise<void> {
  const environment = environmentWithoutSecrets(process.env)
  const find = () => findBrowser(process.env.BROWSER_PATH, environment)
  const found = await find().catch((error) => {
    if (!(error instanceof BrowserMissing)) throw error
    if (process.env.BROWSER_PATH || !hasPackage) throw new CommandError(error.message)
    return undefined
  })
  if (found) return print(`Found ${found.version}: ${found.executable}`)
  await installPackage()
  const installed = await find()
  print(`Installed ${installed.version}: ${installed.executable}`)
}

async function installPackage(): Promise<void> {
  const { devDependencies, peerDependencies } = await readManifest()
  // The published package has it as an optional peer.
  const version = peerDependencies?.[browserPackage] ?? devDependencies?.[browserPackage]
  await mkdir(userPackages, { recursive: true })
  await writeFile(join(userPackages, 'package.json'), '{ "private": true }\n')
  const options = ['--save-exact', '--no-audit', '--no-fund', '--ignore-scripts', '--prefix', userPackages]
  print(`Downloading ${browserPackage} ${version} (70 MB) to ${userPackages}`)
  const child = spawn('npm', ['install', ...options, `${browserPackage}@${version}`], { stdio: ['ignore', 2, 2] })
  const [code] = await once(child, 'exit')
  if (code !== 0) throw new CommandError('npm could not install the browser: see its message above.')
}
