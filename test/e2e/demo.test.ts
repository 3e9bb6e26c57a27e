/** `npm run demo` shows the service truthfully, and leaves nothing behind. */
import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { readdir, readFile } from 'node:fs/promises'
import { type AddressInfo, createServer } from 'node:net'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect, onTestFinished, test } from 'vitest'
import { type Demo, expectNothingLeft, startDemo, temporaryDirectory } from '../support/demo.ts'

/** The commands as they are printed: a line that begins with `curl`, and those that it continues on. */
function commandsIn(output: string): string[] {
  return [...output.matchAll(/^ {2}curl (?:.*\\\n)*.*$/gm)].map(([command]) => command)
}

/** Makes the request of a printed command, as a shell understands it. */
async function perform(command: string): Promise<Response> {
  const { stdout } = await promisify(execFile)('sh', ['-c', `curl() { printf '%s\\0' "$@"; }\n${command}`])
  const words = stdout.split('\0').slice(0, -1)
  const headers = new Headers()
  let method = 'GET'
  let url = ''
  let body: string | null = null
  for (let word = words.shift(); word !== undefined; word = words.shift()) {
    const value = () => words.shift() ?? ''
    if (word === '-X') method = value()
    else if (word === '-d') body = value()
    else if (word === '-H') headers.append(...(value().split(': ') as [string, string]))
    else if (word !== '-N') url = word
  }
  return fetch(url, { method, headers, body })
}

/** Nothing but the commands that send it shows the secret: neither what the demo has printed nor any file of `directory`. */
async function expectSecret(secret: string, { output }: Demo, directory: string): Promise<void> {
  const lines = output()
    .split('\n')
    .filter((line) => line.includes(secret))
  expect(new Set(lines)).toEqual(new Set([expect.stringMatching(/^ {4}-d '/)]))
  const files = (await readdir(directory, { withFileTypes: true })).filter((entry) => entry.isFile())
  expect(files.map(({ name }) => name)).toContain('service.log')
  for (const { name } of files) expect((await readFile(join(directory, name))).includes(secret), name).toBe(false)
}

test('runs through in plain text, also without a browser, and leaves a data directory that it was given without its API key', async () => {
  const DATA_DIR = await temporaryDirectory()
  const demo = await startDemo(['--once'], { DATA_DIR, BROWSER_PATH: '/missing/chrome' })
  expect(await demo.exitCode, demo.output()).toBe(0)
  await expectNothingLeft(demo)
  expect(demo.output()).not.toContain('\u001b')
  expect(demo.output()).toMatch(
    /not on this machine\. BROWSER_PATH is "\/missing\/chrome", which does not run \(ENOENT\)/,
  )
  expect(commandsIn(demo.output())).toHaveLength(6)
  expect(demo.output()).toContain('"token":"********"')
  await expectSecret('lantern-tuesday-4711', demo, DATA_DIR)
  const main = fileURLToPath(new URL('../../src/main.ts', import.meta.url))
  const options = { env: { ...process.env, DATA_DIR } }
  const { stdout } = await promisify(execFile)(process.execPath, [main, 'keys', 'list', '--json'], options)
  expect(JSON.parse(stdout)).toEqual([])
})

test('stays up for the printed commands, each of which answers as it did in the demo, and ends at Ctrl-C', async () => {
  const demo = await startDemo([])
  await demo.waitForOutput('build-manifest \\\n')
  await demo.waitForOutput('\'{"variableData":{"directory"')
  const commands = commandsIn(demo.output())
  const answers = await Promise.all(commands.map(perform))
  expect(answers.map(({ status }) => status)).toEqual([200, 202, 200, 200, 200, 201, 200, 200, 401, 202])
  expect(answers[1]?.headers.get('Idempotent-Replayed')).toBe('true')
  const runs = await Promise.all([3, 4, 6, 7].map((index) => answers[index]?.json()))
  expect(runs.map(({ status }) => status)).toEqual(Array(4).fill('succeeded'))
  expect(demo.output()).toContain('The website has seen 1 sign-in.')
  const [directory = ''] = await readdir(demo.temporary).then((names) => names.filter((name) => name.includes('demo')))
  await expectSecret('kettle-friday-1138', demo, join(demo.temporary, directory))
  const [link = ''] = /http:\S+\/links\/\S+/.exec(demo.output()) ?? []
  const signIn = { method: 'POST', headers: { 'Sec-Fetch-Site': 'same-origin' }, redirect: 'manual' } as const
  const signedIn = await fetch(link, signIn)
  const cookie = signedIn.headers.get('Set-Cookie')?.split(';')[0] ?? ''
  const page = await fetch(new URL('/runs', link), { headers: { Cookie: cookie } })
  expect([signedIn.status, page.status, (await page.text()).includes('check-links')]).toEqual([303, 200, true])
  demo.child.kill('SIGINT')
  demo.child.kill('SIGINT')
  expect(await demo.exitCode, demo.output()).toBe(0)
  await expectNothingLeft(demo)
})

test('says that a port is in use, and nothing more', async () => {
  const other = createServer()
  await once(other.listen(0, '127.0.0.1'), 'listening')
  onTestFinished(() => void other.close())
  const { port } = other.address() as AddressInfo
  const demo = await startDemo(['--once'], { EXECUTION_PORT: String(port) })
  expect(await demo.exitCode).toBe(1)
  const refusal = `EXECUTION_PORT is ${port}, and something listens on that port already: set it to another one.`
  expect(demo.output().trim().split('\n').slice(1).filter(Boolean)).toEqual([refusal])
  expect(await readdir(demo.temporary)).toEqual([])
})

test('refuses an option that it does not have', async () => {
  const demo = await startDemo(['--twice'])
  expect(await demo.exitCode).toBe(1)
  expect(demo.output()).toContain("Unknown option '--twice'")
})
