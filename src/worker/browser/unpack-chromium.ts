/**
 * Unpacks the Chromium of @sparticuz/chromium, whose entry is the first argument, with its libraries and fonts, to
 * the directory in the second argument. Runs as a process, because the package unpacks to TMPDIR, and because waiting for the lock blocks the thread.
 */
import { chmodSync, existsSync, mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
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

const [, , entry, target] = process.argv
if (!entry || !target) throw new Error('The entry of the package or the directory to unpack to is missing.')

const lock = lockFile(`${target}.lock`, 60_000)
if (!lock) throw new Error('Another process has been unpacking it for a minute.')
if (!existsSync(target)) await unpack(pathToFileURL(entry), target)
lock.release()

/** Unpacks under another name and renames at the end, so that the directory is always complete. */
async function unpack(module: URL, directory: string): Promise<void> {
  const { default: Chromium, inflate }: typeof import('@sparticuz/chromium') = await import(module.href)
  const partial = `${directory}.part`
  rmSync(partial, { recursive: true, force: true })
  mkdirSync(partial)
  // Where the package unpacks to.
  process.env.TMPDIR = partial
  const executable = await Chromium.executablePath()
  // Libraries that minimal systems lack. By itself, the package unpacks them only on AWS Lambda.
  await inflate(fileURLToPath(new URL('../bin/al2023.tar.br', module)))
  // For every user: its content is not secret.
  chmodSync(executable, 0o755)
  writeFileSync(join(partial, 'fonts.conf'), fontSettings)
  renameSync(partial, directory)
}
