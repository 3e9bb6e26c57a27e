/** Measures the time from saving a file to the first response of the new version. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { type Dev, startDev } from '../test/support/dev.ts'
import { median, print, table } from './figures.ts'

const changes = 7
/** Minimum time between two changes by a person. */
const pauseMilliseconds = 3000

const code = {
  what: 'a module of src/',
  // Written in place, since `node --watch` does not see replaced files.
  save: ({ read, directory }: Dev, version: string) =>
    writeFileSync(
      join(directory, 'src/contract/problem.ts'),
      read('src/contract/problem.ts').replace(/'Not found\w*'/, `'Not found${version}'`),
    ),
  isServed: async ({ executionUrl }: Dev, version: string) =>
    (await (await get(`${executionUrl()}/v1`)).text()).includes(`"Not found${version}"`),
}

const document = {
  what: 'an OpenAPI document and its generated files',
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
    ['from saving to the first response', 'median', 'longest'],
    ...(await measure('npm run dev', ['src/tools/dev.ts'], [code, document])),
    ...(await measure('node --watch', ['--watch', 'src/main.ts', 'start'], [code])),
  ]
  print(table(rows))
}

async function measure(name: string, args: string[], kinds: (typeof code)[]): Promise<string[][]> {
  const dev = await startDev(args)
  try {
    const rows: string[][] = []
    for (const kind of kinds) rows.push([`${name}, ${kind.what}`, ...(await measureChanges(dev, kind))])
    return rows
  } finally {
    await dev.end()
  }
}

async function measureChanges(dev: Dev, { save, isServed }: typeof code): Promise<string[]> {
  const milliseconds: number[] = []
  for (let count = 0; count < changes; count += 1) {
    await delay(pauseMilliseconds)
    save(dev, `V${count}`)
    const savedAt = performance.now()
    // Requests fail while the service restarts.
    while (!(await isServed(dev, `V${count}`).catch(() => false))) await delay(2)
    milliseconds.push(performance.now() - savedAt)
  }
  return [`${median(milliseconds).toFixed(0)} ms`, `${Math.max(...milliseconds).toFixed(0)} ms`]
}

/** Uses a new connection; a kept-alive one would stay with the old version. */
function get(url: string): Promise<Response> {
  return fetch(url, { headers: { Connection: 'close' } })
}
