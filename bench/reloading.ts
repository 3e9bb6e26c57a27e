/** How soon a saved file is served: from the end of its writing to the first answer of the new version. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { type Dev, startDev } from '../test/support/dev.ts'
import { median, print, table } from './figures.ts'

const changes = 7
/** A person does not save again before that. */
const pauseMilliseconds = 3000

const code = {
  what: 'a module of src/',
  // In its place: `node --watch` would not see another file put there.
  save: ({ read, directory }: Dev, version: string) =>
    writeFileSync(
      join(directory, 'src/contract/problem.ts'),
      read('src/contract/problem.ts').replace(/'Not found\w*'/, `'Not found${version}'`),
    ),
  isServed: async ({ executionUrl }: Dev, version: string) =>
    (await (await get(`${executionUrl()}/v1`)).text()).includes(`"Not found${version}"`),
}

const document = {
  what: 'a document, with what is generated from it',
  save: ({ read, write }: Dev, version: string) =>
    write(
      'openapi/execution.v1.yaml',
      read('openapi/execution.v1.yaml').replace(/execution\/workflows\w*:/, `execution/workflows${version}:`),
    ),
  isServed: async ({ executionUrl }: Dev, version: string) =>
    (await get(`${executionUrl()}/v1/execution/workflows${version}`)).status === 401,
}

export async function reloading(): Promise<void> {
  const rows = [
    ['from saving to the first answer of the new version', 'median', 'longest'],
    ...(await measured('npm run dev', ['src/tools/dev/main.ts'], [code, document])),
    ...(await measured('node --watch', ['--watch', 'src/main.ts', 'start'], [code])),
  ]
  print(table(rows))
}

async function measured(name: string, args: string[], kinds: (typeof code)[]): Promise<string[][]> {
  const dev = await startDev(args)
  try {
    const rows: string[][] = []
    for (const kind of kinds) rows.push([`${name}, ${kind.what}`, ...(await timesOf(dev, kind))])
    return rows
  } finally {
    await dev.end()
  }
}

async function timesOf(dev: Dev, { save, isServed }: typeof code): Promise<string[]> {
  const milliseconds: number[] = []
  for (let count = 0; count < changes; count += 1) {
    await delay(pauseMilliseconds)
    save(dev, `V${count}`)
    const savedAt = performance.now()
    // Where nothing listens while the service starts, the request fails.
    while (!(await isServed(dev, `V${count}`).catch(() => false))) await delay(2)
    milliseconds.push(performance.now() - savedAt)
  }
  return [`${median(milliseconds).toFixed(0)} ms`, `${Math.max(...milliseconds).toFixed(0)} ms`]
}

/** On a connection of its own: one that is kept open stays with the version that accepted it. */
function get(url: string): Promise<Response> {
  return fetch(url, { headers: { Connection: 'close' } })
}
