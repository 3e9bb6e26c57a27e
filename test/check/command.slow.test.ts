/** The command `check-consumer`: reporters, exit codes, and a sentence for each kind of bad input. */
import { execFile } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, onTestFinished, test } from 'vitest'

const root = fileURLToPath(new URL('../..', import.meta.url))
const consumer = (name: string) => join(root, 'test/check/consumers', name)

function run(args: string[], environment: Record<string, string> = {}) {
  return new Promise<{ code: number; stdout: string; stderr: string }>((resolve) => {
    const options = { cwd: root, env: { ...process.env, ...environment } }
    execFile(process.execPath, ['src/main.ts', 'check-consumer', ...args], options, (error, stdout, stderr) =>
      resolve({ code: error ? Number(error.code) : 0, stdout, stderr }),
    )
  })
}

async function file(text: string): Promise<string> {
  const path = join(await mkdtemp(join(tmpdir(), 'check-')), 'check.yaml')
  await writeFile(path, text)
  onTestFinished(() => rm(dirname(path), { recursive: true }))
  return path
}

async function freePort(): Promise<number> {
  const server = createServer()
  const port = await new Promise<number>((resolve) =>
    server.listen(0, '127.0.0.1', () => resolve((server.address() as { port: number }).port)),
  )
  await new Promise((resolve) => server.close(resolve))
  return port
}

test('a correct program passes, and the table says so', async () => {
  const { code, stdout } = await run(['--only', 'plain-use,queue-unavailable', '--', 'node', consumer('with-fetch.ts')])
  expect(stdout).toContain('2 situations: 2 passed, 0 with findings')
  expect(code).toBe(0)
})

test.each([
  ['text', 'The rule:    Send the request again'],
  ['json', '"situation": "queue-cut-after"'],
  ['junit', '<failure message="It repeated the request with another Idempotency-Key.'],
  ['sarif', '"ruleId": "queue-cut-after"'],
])('a finding ends with code 1, reported as %s', async (reporter, text) => {
  const args = ['--only', 'queue-cut-after', '--reporter', reporter, '--', 'node', consumer('with-fetch.ts')]
  const { code, stdout, stderr } = await run(args, { FAULT: 'newKey' })
  expect(stderr).toBe('')
  expect(stdout).toContain(text)
  expect(code).toBe(1)
})

test('a receiver that ships twice is found by what it says of a run', async () => {
  const PORT = String(await freePort())
  const scenario = await file(`done: { url: 'http://127.0.0.1:${PORT}/shipped/{runId}', matches: 'shipped":(\\d+)' }`)
  const webhook = `http://127.0.0.1:${PORT}/hooks`
  const args = ['--webhook', webhook, '--scenario', scenario, '--only', 'webhook-twice', '--', 'node']
  const { code, stdout } = await run([...args, consumer('receiver.ts')], { PORT, FAULT: 'noIds' })
  expect(stdout).toContain('It did the work more than once.')
  expect(code).toBe(1)
})

test.each([
  ['no command', [], 'There is no command: write it after `--`'],
  ['an unknown reporter', ['--reporter', 'xml', '--', 'true'], '--reporter is "xml"'],
  ['an unknown situation', ['--only', 'queue-cuts-after', '--', 'true'], 'did you mean "queue-cut-after"?'],
  ['an unknown program', ['--', 'no-such-program'], 'The command "no-such-program" cannot be started (ENOENT)'],
  ['a program that never calls', ['--', 'true'], 'The program sent no request: it ended with code 0.'],
  ['a program that ends at once', ['--', 'false'], 'The program sent no request: it ended with code 1.'],
  [
    'a receiver that ends',
    ['--webhook', 'http://127.0.0.1:1/', '--', 'true'],
    'The command ended with 0 while it was checked',
  ],
  [
    'a receiver elsewhere',
    ['--webhook', 'http://127.0.0.1:1/', '--', 'sleep', '60'],
    'Nothing answers at http://127.0.0.1:1/',
  ],
  ['a webhook that is no URL', ['--webhook', 'here', '--', 'true'], '--webhook is "here"'],
])('%s is one sentence', async (_, args, sentence) => {
  const { code, stderr } = await run(args)
  expect(stderr).toContain(sentence)
  expect(stderr.trim().split('\n')).toHaveLength(1)
  expect(code).toBe(1)
})

test.each([
  ['don: { output: paid }', 'did you mean "done"?'],
  ['done: { output: "(" }', 'done.output is no regular expression'],
  ['limitSeconds: never', 'limitSeconds'],
  ['done: { matches: x }', 'done.matches needs done.url'],
])('a mistake in the file is named: %s', async (text, sentence) => {
  const { code, stderr } = await run(['--scenario', await file(text), '--', 'true'])
  expect(stderr).toContain(sentence)
  expect(code).toBe(1)
})
