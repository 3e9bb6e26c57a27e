/** The published client: built, packed, installed into an empty project, compiled, and run on Node and in a browser. */
import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { mkdir, symlink, writeFile } from 'node:fs/promises'
import { createServer, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join, resolve } from 'node:path'
import { promisify } from 'node:util'
import { gzipSync } from 'node:zlib'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Browser, browserErrors, startBrowser } from '../support/browser.ts'
import { startTestService, type TestService } from '../support/service.ts'
import type { Surfaces, tour } from './client-package/tour.ts'
import { newProject, type Project } from './project.ts'

let service: TestService
let project: Project
let browser: Browser

beforeAll(async () => {
  // First: building the project blocks this process for longer than a browser may take to reply.
  browser = await startBrowser()
  ;[service, project] = await Promise.all([startTestService(), newProject('test/consumers/client-package')])
})
afterAll(async () => {
  await browser.close()
  project.remove()
  await service.stop()
})

/** The result of the tour in every environment. */
const expected = {
  output: { greeting: 'Hello, Ada!' },
  events: ['queued', 'running', 'log', 'progress', 'succeeded'],
  files: ['Hello', 5],
  workflowIds: ['print', 'greet'],
  state: { cookies: [], origins: [] },
  names: ['Shop'],
  nothing: true,
  refused: 'Unauthorized',
  missing: '/docs/errors#not-found',
  waited: 'succeeded',
  thrown: 'ProblemError 404',
  drifts: [],
}

const browserTypes = { lib: ['es2022', 'dom', 'dom.iterable'], types: [] }
const nodeTypes = { lib: ['es2022'], types: ['node'] }

let compiledForNode: Promise<string> | undefined

/** Compiles once, because it takes some seconds. */
function compileForNode(): Promise<string> {
  compiledForNode ??= project.compile('on-node.ts', { ...nodeTypes, module: 'nodenext', outDir: 'compiled' })
  return compiledForNode
}

test('the types of the client compile, including libraries, with nodenext and Node', async () => {
  expect(await compileForNode()).toBe('')
})

test.for<[what: string, file: string, options: object]>([
  ['nodenext and a browser', 'in-browser.ts', { ...browserTypes, module: 'nodenext', noEmit: true }],
  ['bundler and Node', 'on-node.ts', { ...nodeTypes, module: 'esnext', moduleResolution: 'bundler', noEmit: true }],
  [
    'bundler, a browser and the strictest compiler options',
    'in-browser.ts',
    {
      ...browserTypes,
      module: 'esnext',
      moduleResolution: 'bundler',
      exactOptionalPropertyTypes: true,
      noUncheckedIndexedAccess: true,
      noPropertyAccessFromIndexSignature: true,
      verbatimModuleSyntax: true,
      isolatedModules: true,
      noEmit: true,
    },
  ],
])('its types compile, including libraries, with %s', async ([, file, options]) => {
  expect(await project.compile(file, options)).toBe('')
})

const names = 'createBrowserContextClient, createExecutionClient, ProblemError, problemTypes, unwrap'

/** Declarations that the examples rely on. */
const prelude = `import type { Workflows } from './workflows.ts'
import { ${names}, type BrowserContextClient, type ExecutionClient } from 'execution-service-client'
declare const client: ExecutionClient
declare const contexts: BrowserContextClient
declare const runId: string
declare const contextId: string
`

const countWords = `import { defineWorkflow } from 'execution-service/workflow'
export default defineWorkflow({
  id: 'count-words',
  version: '1.0.0',
  title: 'Count',
  variables: { type: 'object', additionalProperties: false, required: ['path'], properties: { path: { type: 'string' } } },
  output: { type: 'object', required: ['words'], properties: { words: { type: 'integer' } } },
  run: () => ({ words: 1 }),
})
`

test('its command writes the types of a directory, once openapi-typescript is installed', async () => {
  await mkdir(join(project.directory, 'workflows'))
  await writeFile(join(project.directory, 'workflows/count-words.ts'), countWords)
  const bin = join(project.directory, 'node_modules/.bin/execution-service-client')
  const writeTypes = () =>
    promisify(execFile)(process.execPath, [bin, 'types', '--workflows', 'workflows', '--out', 'workflows.ts'], {
      cwd: project.directory,
    })
  expect((await writeTypes().catch((error) => error)).stderr).toBe(
    'openapi-typescript is not installed: run `npm install --save-dev openapi-typescript`.\n',
  )
  const installed = (root: string) => join(root, 'node_modules/openapi-typescript')
  await symlink(resolve(installed('.')), installed(project.directory))
  expect((await writeTypes()).stdout).toBe('wrote: workflows.ts (1 workflow)\n')
})

test('the examples in the README and the guide of the client compile', async () => {
  const texts = ['src/client/README.md', 'docs/guides/client.md'].map((path) => readFileSync(path, 'utf8'))
  const blocks = texts
    .flatMap((text) => [...text.matchAll(/^```ts\n(.*?)^```/gms)].map(([, code = '']) => code))
    // test/client/webhooks.test.ts runs the example with express, which has no types here.
    .filter((code) => !code.includes("from 'express'"))
  expect(blocks.length).toBeGreaterThan(10)
  expect(existsSync(join(project.directory, 'workflows.ts')), 'the test before this one writes it').toBe(true)
  const imported = blocks.flatMap((code) => [...code.matchAll(/^import \{ (.+) \} from '(.+)'$/gm)])
  for (const [, found = '', from] of imported) {
    expect(from).toBe('execution-service-client')
    expect(names.split(', ')).toEqual(expect.arrayContaining(found.split(', ')))
  }
  const functions = blocks.map((code, index) => `export async function example${index}() {\n${code}}\n`)
  const program = prelude + functions.join('').replaceAll(/^import .*\n/gm, '')
  await writeFile(join(project.directory, 'examples.ts'), program)
  expect(await project.compile('examples.ts', { ...nodeTypes, module: 'nodenext', noEmit: true })).toBe('')
})

test.for([
  ['of the service', process.execPath],
  ['of npm, which may be older', process.env.npm_node_execpath ?? process.execPath],
])("a consumer's program runs on the version of Node %s", async ([, node = '']) => {
  const { key: apiKey } = await service.createAccount()
  const { executionUrl, browserContextUrl } = service
  expect(await compileForNode()).toBe('')
  const program = join(project.directory, 'compiled/on-node.js')
  const surfaces: Surfaces = { executionUrl, browserContextUrl, apiKey }
  const { stdout } = await promisify(execFile)(node, [program, JSON.stringify(surfaces)])
  expect(JSON.parse(stdout)).toEqual(expected)
})

test("a consumer's bundle runs in a browser, and its event stream survives a broken connection", async (test) => {
  const { key: apiKey } = await service.createAccount()
  const { baseUrl, countBroken } = await startOrigin(await project.bundle('in-browser.ts'), test)
  const page = await browser.newPage(test, { baseUrl })
  await page.goto('/')
  const surfaces: Surfaces = { executionUrl: baseUrl, browserContextUrl: baseUrl, apiKey }
  const result = await page.evaluate((given) => (globalThis as unknown as { tour: typeof tour }).tour(given), surfaces)
  expect(result).toEqual(expected)
  expect(countBroken()).toBe(1)
  const errors = await browserErrors(page)
  // The tour causes these: a broken stream, an unknown key, and a deleted browser context.
  expect(errors.filter((each) => !/ERR_INCOMPLETE_CHUNKED_ENCODING|status of 40[14]/.test(each))).toEqual([])
})

/**
 * Serves the page and both APIs at one origin, because the APIs send no CORS headers. Breaks the first event stream after
 * its first event.
 */
async function startOrigin(script: string, test: { onTestFinished(act: () => void): void }) {
  let streams = 0
  const server = createServer((incoming, response) => {
    const { url = '', method, headers } = incoming
    if (url === '/')
      return response
        .setHeader('Content-Type', 'text/html')
        .end('<!doctype html><script type="module" src="/tour.js"></script>')
    if (url === '/tour.js') return response.setHeader('Content-Type', 'text/javascript').end(script)
    const upstream = url.startsWith('/alpha/') ? service.browserContextUrl : service.executionUrl
    const forwarded = request(`${upstream}${url}`, { method, headers }, (received) => {
      response.writeHead(received.statusCode ?? 502, received.headers)
      const breaks = url.endsWith('/events') && ++streams === 1
      if (!breaks) return received.pipe(response)
      received.once('data', (part: Buffer) =>
        response.write(part.subarray(0, part.indexOf('\n\n') + 9), () => response.destroy()),
      )
    })
    incoming.pipe(forwarded)
    return
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  test.onTestFinished(() => void server.close())
  return { baseUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, countBroken: () => streams - 1 }
}

test('the package imports only openapi-fetch, and nothing of Node', () => {
  const files = readdirSync(project.packageDirectory, { recursive: true, encoding: 'utf8' })
  // The command that writes types is a program of Node.
  const ofCommand = /^src\/(openapi\/|client\/(types-command|workflow-type-file)\.)/
  const code = files.filter((file) => /\.(js|d\.ts)$/.test(file) && !ofCommand.test(file))
  expect(code).toEqual(
    expect.arrayContaining(['src/client/index.js', 'src/client/index.d.ts', 'generated/execution.v1/client.js']),
  )
  const imported = code.flatMap((file) => {
    const text = readFileSync(join(project.packageDirectory, file), 'utf8')
    return [...text.matchAll(/\b(?:from|import|require)\b\s*\(?\s*(["'])(.+?)\1/g)].map(
      ([, , specifier = '']) => specifier,
    )
  })
  expect(imported.length).toBeGreaterThan(30)
  expect(new Set(imported.map((specifier) => specifier.replace(/^\..*\.[jt]s$/, './')))).toEqual(
    new Set(['./', 'openapi-fetch']),
  )
})

test('the package has a licence, a README and a manifest that matches the repository', () => {
  const files = readdirSync(project.packageDirectory).sort()
  expect(files).toEqual(['LICENSE', 'README.md', 'generated', 'package.json', 'src'])
  const manifest = JSON.parse(readFileSync(join(project.packageDirectory, 'package.json'), 'utf8'))
  const repositoryManifest = JSON.parse(readFileSync('package.json', 'utf8'))
  expect(Object.keys(manifest.dependencies)).toEqual(['openapi-fetch'])
  expect(manifest.dependencies['openapi-fetch']).toBe(`^${repositoryManifest.dependencies['openapi-fetch']}`)
  expect([manifest.version, manifest.license, manifest.engines]).toEqual([
    repositoryManifest.version,
    repositoryManifest.license,
    repositoryManifest.engines,
  ])
})

test('the README of the package states its size, minified and gzipped', async () => {
  await writeFile(join(project.directory, 'all.ts'), "export * from 'execution-service-client'\n")
  const kilobytes = gzipSync(await project.bundle('all.ts')).length / 1000
  const stated = Number(readFileSync('src/client/README.md', 'utf8').match(/([\d.]+) kB minified\s+and\s+gzipped/)?.[1])
  expect(stated, `It is ${kilobytes.toFixed(1)} kB minified and gzipped`).toBeGreaterThan(kilobytes * 0.97)
  expect(stated, `It is ${kilobytes.toFixed(1)} kB minified and gzipped`).toBeLessThan(kilobytes * 1.03)
})
