/**
 * Unpacks the Chromium that npm brings to the directory that the argument names, with its libraries and fonts. A
 * process of its own, because the package unpacks to where TMPDIR points, and because a lock may keep it waiting.
 */
import { chmodSync, existsSync, mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import Chromium from '@sparticuz/chromium'
import { lockFile } from './file-lock.ts'

/**
 * Open Sans comes with the package and looks the same everywhere. It has no monospaced face and few symbols: those are
 * the system's, where it has any.
 */
const fontSettings = `<?xml version="1.0"?>
<!DOCTYPE fontconfig SYSTEM "fonts.dtd">
<fontconfig>
  <dir prefix="relative">fonts</dir>
  <dir>/usr/share/fonts</dir>
  <dir>/usr/local/share/fonts</dir>
  <alias binding="same">
    <family>sans-serif</family>
    <prefer><family>Open Sans</family></prefer>
  </alias>
  <alias binding="same">
    <family>system-ui</family>
    <prefer><family>Open Sans</family></prefer>
  </alias>
  <alias binding="same">
    <family>monospace</family>
    <prefer>
      <family>DejaVu Sans Mono</family>
      <family>Liberation Mono</family>
      <family>Noto Sans Mono</family>
    </prefer>
  </alias>
</fontconfig>
`

const place = process.argv[2]
if (!place) throw new Error('Name the directory to unpack to.')

const lock = lockFile(`${place}.lock`, 60_000)
if (!lock) throw new Error('Another process has been unpacking it for a minute.')
if (!existsSync(place)) await unpack(place)
lock.release()

/** Into a directory aside, which then takes its name: what bears the name is whole. */
async function unpack(place: string): Promise<void> {
  const aside = `${place}.part`
  rmSync(aside, { recursive: true, force: true })
  mkdirSync(aside)
  // Its libraries are unpacked only where the package believes to be on the system that they were built for.
  Object.assign(process.env, { TMPDIR: aside, AWS_EXECUTION_ENV: 'AWS_Lambda_nodejs24.x' })
  const executable = await Chromium.executablePath()
  // For every user: it is the package's content, which all who can read the package have.
  chmodSync(executable, 0o755)
  writeFileSync(join(aside, 'fonts.conf'), fontSettings)
  renameSync(aside, place)
}
