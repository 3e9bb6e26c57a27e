/** `npm run demo`: what it prints is true, and it leaves nothing behind. */
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { expectNothingLeft, findDemoProcesses, startDemo } from '../support/demo.ts'
import { waitLimits } from '../support/timeouts.ts'

/** The printed commands: lines that begin with `curl`, with their continuation lines. */
function findCommands(output: string): string[] {
  return [...output.matchAll(/^ {2}curl (?:.*\\\n)*.*$/gm)].map(([command]) => command)
}

/** Sends the request of a printed command, as a shell parses it. */
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

test('with --once, the demo runs a workflow to its end and prints the secret only in its command', async () => {
  const demo = await startDemo(['--once'])
  expect(await demo.exitCode, demo.output()).toBe(0)
  await expectNothingLeft(demo)
  expect(demo.output()).not.toContain('\u001b')
  expect(demo.output()).toContain('"status": "succeeded"')
  expect(findCommands(demo.output())).toHaveLength(3)
  const lines = demo.output().split('\n')
  expect(lines.filter((line) => line.includes('lantern-tuesday-4711'))).toEqual([expect.stringMatching(/^ {4}-d '/)])
})

test('with --python, a worker in Python executes the run', async () => {
  const demo = await startDemo(['--python', '--once'])
  expect(await demo.exitCode, demo.output()).toBe(0)
  await expectNothingLeft(demo)
  expect(demo.output()).toContain('"status": "succeeded"')
  expect(demo.output()).toContain('"words": 18')
  expect(demo.output()).toContain('step chapter 2: finished')
  expect(findCommands(demo.output())).toHaveLength(3)
})

test('with --python, a demo that is killed leaves no worker behind', async () => {
  const demo = await startDemo(['--python'])
  await demo.waitForOutput('executes the workflows in examples/python')
  expect((await findDemoProcesses(demo)).some((command) => command.includes('runpy'))).toBe(true)
  demo.child.kill('SIGKILL')
  await expect.poll(() => findDemoProcesses(demo), waitLimits).toEqual([])
})

test('without Python, --python is refused in one sentence', async () => {
  const demo = await startDemo(['--python', '--once'], { PATH: '/nonexistent' })
  expect(await demo.exitCode).toBe(1)
  expect(demo.output().trim()).toBe('--python needs Python 3.9 or later: there is none on the PATH.')
})

test('without --once, the printed commands and the sign-in link work until Ctrl-C', async () => {
  const demo = await startDemo([])
  await demo.waitForOutput('\'{"variableData":{"directory"')
  const responses = await Promise.all(findCommands(demo.output()).map(perform))
  expect(responses.map(({ status }) => status)).toEqual([200, 200, 200, 202])
  expect(responses[0]?.headers.get('Idempotent-Replayed')).toBe('true')
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

test('a demo that is stopped or killed during the run leaves no process behind', async () => {
  const stopped = await startDemo([])
  await stopped.waitForOutput('running (attempt 1)')
  stopped.child.kill('SIGTERM')
  expect(await stopped.exitCode, stopped.output()).toBe(1)
  await expectNothingLeft(stopped)
  const killed = await startDemo([])
  await killed.waitForOutput('running (attempt 1)')
  killed.child.kill('SIGKILL')
  await expect.poll(() => findDemoProcesses(killed)).toEqual([])
})

test('an unknown option is an error', async () => {
  const demo = await startDemo(['--twice'])
  expect(await demo.exitCode).toBe(1)
  expect(demo.output()).toContain("Unknown option '--twice'")
})
