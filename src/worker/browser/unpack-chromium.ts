/**
 * Unpacks the Chromium of @sparticuz/chromium, with its libraries and fonts, to the directory in the argument. Runs as a
 * process, because the package unpacks to TMPDIR, and because waiting for the lock blocks the thread.
 */
import { chmodSync, existsSync, mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import Chromium, { inflate } from '@sparticuz/chromium'
import { lockFile } from '../../storage/temporary-directory.ts'

/** Open Sans comes with the package. It has no monospaced face and few symbols: those come from the system, if any. */
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

const target = process.argv[2]
if (!target) throw new Error('The directory to unpack to is missing.')

const lock = lockFile(`${target}.lock`, 60_000)
if (!lock) throw new Error('Another process has been unpacking it for a minute.')
if (!existsSync(target)) await unpack(target)
lock.release()

/** Unpacks under another name and renames at the end, so that the directory is always complete. */
async function unpack(directory: string): Promise<void> {
  const partial = `${directory}.part`
  rmSync(partial, { recursive: true, force: true })
  mkdirSync(partial)
  // Where the package unpacks to.
  process.env.TMPDIR = partial
  const executable = await Chromium.executablePath()
  // Libraries that minimal systems lack. By itself, the package unpacks them only on AWS Lambda.
  await inflate(fileURLToPath(new URL('../bin/al2023.tar.br', import.meta.resolve('@sparticuz/chromium'))))
  // For every user: its content is not secret.
  chmodSync(executable, 0o755)
  writeFileSync(join(partial, 'fonts.conf'), fontSettings)
  renameSync(partial, directory)
}
