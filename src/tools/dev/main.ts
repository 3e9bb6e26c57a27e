/**
 * `npm run dev`: serves, and lets the new version serve whenever code, a document, a workflow or a guide is saved.
 * generated/ follows the documents.
 */

import { exitOnError } from '../../commands/output.ts'
import { onStopSignal } from '../../commands/stop-signal.ts'
import { readConfig } from '../../config.ts'
import { Generator } from './generator.ts'
import { Versions } from './versions.ts'
import { WatchedFiles } from './watched-files.ts'

const generator = new Generator()
const versions = new Versions((code, signal) => {
  say(`The service ended (${signal ?? `exit code ${code}`}). It starts again when a file is saved.`)
})

/** Whether the code that is there is not the one that serves. */
let isBehind = false

async function dev(): Promise<void> {
  const { WORKFLOWS_DIR } = readConfig(process.env)
  const watched = new WatchedFiles(['src', 'openapi', 'docs/guides', 'docs/samples', WORKFLOWS_DIR])
  onStopSignal(async () => {
    watched.close()
    generator.stop()
    await versions.stop()
  })
  const [refused, generated] = await Promise.all([versions.replace(), generator.generate()])
  watched.loaded()
  if (refused !== undefined) say(`The service does not start. ${refused}`)
  isBehind = refused !== undefined
  if ('refused' in generated) say(`generated/ stays as it is. ${generated.refused}`)
  else if (generated.written.length > 0) say(await reload('generated/', performance.now()))
  for (;;) {
    const { files, at } = await watched.changed()
    const news = await take(files, at)
    watched.loaded()
    if (news !== undefined) say(news)
  }
}

/** Returns what there is to say of it. */
async function take(files: string[], at: number): Promise<string | undefined> {
  const isOf = (folder: string) => (file: string) => file.startsWith(`${folder}/`)
  const ofDev = files.find(isOf('src/tools/dev'))
  if (ofDev) say(`${ofDev} takes effect when \`npm run dev\` is started again.`)
  const others = files.filter((file) => !isOf('src/tools/dev')(file))
  const sources = others.filter((file) => isOf('openapi')(file) || isOf('src/tools/generate')(file))
  if (sources.some(isOf('src/tools/generate'))) generator.stop()
  const generated = sources.length > 0 ? await generator.generate() : { written: [] }
  if ('refused' in generated) {
    isBehind = true
    return `Not reloaded. ${generated.refused}`
  }
  const written = generated.written.length
  const isChanged = written > 0 || others.length > sources.length
  if (isChanged || isBehind) return reload(listed(others) + (written > 0 ? `, ${written} files of generated/` : ''), at)
  return others.length > 0 ? `${listed(others)}: nothing changes.` : undefined
}

async function reload(what: string, at: number): Promise<string> {
  const refused = await versions.replace()
  isBehind = refused !== undefined
  if (refused !== undefined) return `Not reloaded. ${refused}`
  return `Reloaded in ${((performance.now() - at) / 1000).toFixed(2)} s: ${what}`
}

/** As many names as one looks at. */
function listed(files: string[]): string {
  const shown = files.slice(0, 3).join(', ')
  return files.length > 3 ? `${shown} and ${files.length - 3} more` : shown
}

/** For people; the logs go to standard output. */
function say(text: string): void {
  process.stderr.write(`${text}\n`)
}

await exitOnError(dev)
