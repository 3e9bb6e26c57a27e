/** Tests of runs with a browser: a site that sets cookies, an installation, and runs that visit the site. */
import { once } from 'node:events'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import type { PersistContext, Run } from '../../src/domain/runs/run.ts'
import { findBundled } from '../../src/worker/browser/find-browser.ts'
import { newDirectory, queueRun, type Test } from './domain.ts'
import { openInstallation, waitForRun } from './worker.ts'

export interface Site {
  url: string
  /** Resolves when a page has requested `/hold`, whose response stays open. `closed` resolves with the connection. */
  held(): Promise<{ closed: Promise<unknown> }>
  close(): void
}

/** Starts a site that shows the cookies of a request, and sets one if the query asks for it. */
export async function startSite(): Promise<Site> {
  let onHeld: (held: { closed: Promise<unknown> }) => void = () => {}
  const server: Server = createServer((request, response) => {
    const { pathname, searchParams } = new URL(request.url ?? '/', 'http://site')
    const cookie = searchParams.get('cookie')
    response.setHeader('Content-Type', 'text/html; charset=utf-8')
    if (cookie) response.setHeader('Set-Cookie', `visit=${cookie}; HttpOnly; Max-Age=3600`)
    if (pathname !== '/hold') return response.end(`<!doctype html><body>${request.headers.cookie ?? ''}`)
    response.writeHead(200).write('held')
    return onHeld({ closed: once(response, 'close') })
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    held: () =>
      new Promise((resolve) => {
        onHeld = resolve
      }),
    close: () => {
      server.closeAllConnections()
      server.close()
    },
  }
}

export interface Visit {
  how?: string
  value?: string
  started?: string
  until?: string
  /** The run's browser context; none by default. */
  contextId?: string | undefined
  persist?: PersistContext
  workflowId?: string
}

/** The output of the workflow `browse`; `before` and `after` are the page's stored data. */
export interface Visited {
  pid: number
  before: Record<'cookies' | 'local' | 'database' | 'session', string>
  after: Visited['before']
}

/** Opens an installation with a site, and functions that queue runs which visit it. */
export async function openBrowsing(test: Test) {
  const installation = await openInstallation(test)
  const { domain, principal } = installation
  const site = await startSite()
  test.onTestFinished(() => site.close())
  const { accountId } = principal
  const visit = ({ contextId, persist = 'onSuccess', workflowId = 'browse', how = 'staying', ...same }: Visit) =>
    queueRun(domain, principal, {
      workflowId,
      variables: { url: site.url, how, ...same },
      ...(contextId !== undefined && { browserContextId: contextId, persistContext: persist }),
    })
  return {
    ...installation,
    accountId,
    site,
    visit,
    visited: async (changes: Visit) =>
      (await succeeded(await waitForRun(domain, await visit(changes)))).output as Visited,
    createContext: async () => (await domain.browserContexts.create(accountId, undefined))?.id ?? '',
    context: (id: string) => domain.browserContexts.get(accountId, id),
    stored: async (id: string) => (await domain.contextVersions.read(accountId, id)) ?? '',
  }
}

async function succeeded(run: Run): Promise<Run> {
  if (run.status === 'succeeded') return run
  throw new Error(`The run is ${run.status} (${run.reason}): ${run.error?.message}`)
}

/** Returns all descendants of the process with their command lines (Linux only). */
export function findDescendants(pid: number): { pid: number; command: string }[] {
  const read = (path: string) => {
    try {
      return readFileSync(path, 'utf8')
    } catch {
      return ''
    }
  }
  const all = readdirSync('/proc').filter((name) => /^\d+$/.test(name))
  const parents = new Map(
    all.map((name) => [Number(name), Number(/\) \w (\d+)/.exec(read(`/proc/${name}/stat`))?.[1])]),
  )
  const isBelow = (each: number): boolean => {
    const parent = parents.get(each)
    return parent !== undefined && parent > 1 && (parent === pid || isBelow(parent))
  }
  const below = [...parents.keys()].filter(isBelow)
  return below.map((each) => ({ pid: each, command: read(`/proc/${each}/cmdline`).replaceAll('\0', ' ') }))
}

/** What Chromium 156 does at its start: it creates this socket, and ends if its path is too long for one. */
const socketCheck = 'socket="$TMPDIR/org.chromium.Chromium.XXXXXX/SingletonSocket"'

/** Returns a directory for the PATH with a Chromium that needs its socket, and starts the one from npm. */
export async function installedChromium(test: Test): Promise<string> {
  const { executable, environment } = await findBundled(process.env)
  const directory = await newDirectory(test)
  const variables = Object.entries(environment).map(([name, value]) => `${name}='${value}'`)
  const script = `#!/bin/sh
if [ "$1" != --version ]; then
  ${socketCheck}
  if [ \${#socket} -gt 107 ]; then echo "Socket path too long: $socket" >&2; exit 1; fi
fi
${variables.join(' ')} exec '${executable}' "$@"
`
  writeFileSync(join(directory, 'chromium'), script, { mode: 0o755 })
  return directory
}
