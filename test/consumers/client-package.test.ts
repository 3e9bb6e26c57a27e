/** The client as a consumer has it: built, packed, installed into an empty project, compiled, and run where it is used. */
import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { request as ask, createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
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
  ;[service, project, browser] = await Promise.all([
    startTestService(),
    newProject('test/consumers/client-package'),
    startBrowser(),
  ])
})
afterAll(async () => {
  await browser.close()
  project.remove()
  await service.stop()
})

/** What the tour comes to, wherever it is made. */
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

/** Once, because it takes some seconds. */
function compileForNode(): Promise<string> {
  compiledForNode ??= project.compile('on-node.ts', { ...nodeTypes, module: 'nodenext', outDir: 'compiled' })
  return compiledForNode
}

test('its types hold, libraries included, with nodenext and Node', async () => {
  expect(await compileForNode()).toBe('')
})

test.for<[what: string, file: string, options: object]>([
  ['nodenext and a browser', 'in-browser.ts', { ...browserTypes, module: 'nodenext', noEmit: true }],
  ['bundler and Node', 'on-node.ts', { ...nodeTypes, module: 'esnext', moduleResolution: 'bundler', noEmit: true }],
  [
    'bundler, a browser and the strictest options',
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
])('its types hold, libraries included, with %s', async ([, file, options]) => {
  expect(await project.compile(file, options)).toBe('')
})

const names = 'createBrowserContextClient, createExecutionClient, ProblemError, problemTypes, unwrap'

/** What the examples of a text take for granted. */
const prelude = `import { ${names}, type BrowserContextClient, type ExecutionClient } from 'execution-service-client'
declare const client: ExecutionClient
declare const contexts: BrowserContextClient
declare const runId: string
`

test('the examples in its README and its guide compile', async () => {
  const texts = ['src/client/README.md', 'docs/guides/client.md'].map((path) => readFileSync(path, 'utf8'))
  const blocks = texts.flatMap((text) => [...text.matchAll(/^```ts\n(.*?)^```/gms)].map(([, code = '']) => code))
  expect(blocks.length).toBeGreaterThan(10)
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
  ['that runs the service', process.execPath],
  ['that runs npm, which may be an older one', process.env.npm_node_execpath ?? process.execPath],
])("a consumer's program runs on the Node %s", async ([, node = '']) => {
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
  const { baseUrl, broken } = await origin(await project.bundle('in-browser.ts'), test)
  const page = await browser.newPage(test, { baseUrl })
  await page.goto('/')
  const surfaces: Surfaces = { executionUrl: baseUrl, browserContextUrl: baseUrl, apiKey }
  const made = await page.evaluate((given) => (globalThis as unknown as { tour: typeof tour }).tour(given), surfaces)
  expect(made).toEqual(expected)
  expect(broken()).toBe(1)
  const heard = await browserErrors(page)
  // What the tour provokes: a broken stream, a wrong key, and a browser context that is gone.
  expect(heard.filter((each) => !/ERR_INCOMPLETE_CHUNKED_ENCODING|status of 40[14]/.test(each))).toEqual([])
})

/** Page and both APIs at one address, because the APIs allow no other origin. The first event stream breaks after its first event. */
async function origin(script: string, test: { onTestFinished(act: () => void): void }) {
  let streams = 0
  const server = createServer((request, response) => {
    const { url = '', method, headers } = request
    if (url === '/')
      return response
        .setHeader('Content-Type', 'text/html')
        .end('<!doctype html><script type="module" src="/tour.js"></script>')
    if (url === '/tour.js') return response.setHeader('Content-Type', 'text/javascript').end(script)
    const upstream = url.startsWith('/alpha/') ? service.browserContextUrl : service.executionUrl
    const asked = ask(`${upstream}${url}`, { method, headers }, (answered) => {
      response.writeHead(answered.statusCode ?? 502, answered.headers)
      const breaks = url.endsWith('/events') && ++streams === 1
      if (!breaks) return answered.pipe(response)
      answered.once('data', (part: Buffer) =>
        response.write(part.subarray(0, part.indexOf('\n\n') + 9), () => response.destroy()),
      )
    })
    request.pipe(asked)
    return
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  test.onTestFinished(() => void server.close())
  return { baseUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, broken: () => streams - 1 }
}

test('no file of it imports anything but its neighbours and openapi-fetch: nothing of Node', () => {
  const files = readdirSync(project.packageDirectory, { recursive: true, encoding: 'utf8' })
  const code = files.filter((file) => /\.(js|d\.ts)$/.test(file))
  expect(code).toEqual(expect.arrayContaining(['index.js', 'index.d.ts', 'generated/execution.v1/client.js']))
  const imported = code.flatMap((file) => {
    const text = readFileSync(join(project.packageDirectory, file), 'utf8')
    return [...text.matchAll(/\b(?:from|import|require)\b\s*\(?\s*(["'])(.+?)\1/g)].map(
      ([, , specifier = '']) => specifier,
    )
  })
  expect(imported.length).toBeGreaterThan(30)
  expect(new Set(imported.map((specifier) => specifier.replace(/^\..*\.js$/, './')))).toEqual(
    new Set(['./', 'openapi-fetch']),
  )
})

test('it has what npm shows, and no file that is not used', () => {
  const files = readdirSync(project.packageDirectory)
  expect(files).toEqual(
    expect.arrayContaining(['LICENSE', 'README.md', 'package.json', 'index.js', 'index.d.ts', 'generated']),
  )
  const manifest = JSON.parse(readFileSync(join(project.packageDirectory, 'package.json'), 'utf8'))
  const own = JSON.parse(readFileSync('package.json', 'utf8'))
  expect(Object.keys(manifest.dependencies)).toEqual(['openapi-fetch'])
  expect(manifest.dependencies['openapi-fetch']).toBe(`^${own.dependencies['openapi-fetch']}`)
  expect([manifest.version, manifest.license, manifest.engines]).toEqual([own.version, own.license, own.engines])
})

test.for(['README.md', 'src/client/README.md'])('its size, minified and gzipped, is the one in %s', async (readme) => {
  await writeFile(join(project.directory, 'all.ts'), "export * from 'execution-service-client'\n")
  const kilobytes = gzipSync(await project.bundle('all.ts')).length / 1000
  const stated = Number(readFileSync(readme, 'utf8').match(/([\d.]+) kB minified and gzipped/)?.[1])
  expect(stated, `It is ${kilobytes.toFixed(1)} kB minified and gzipped`).toBeGreaterThan(kilobytes * 0.97)
  expect(stated, `It is ${kilobytes.toFixed(1)} kB minified and gzipped`).toBeLessThan(kilobytes * 1.03)
})
