/** The Python package: its own tests, its types, its wheel, and its client against the real service. */
import { execFile, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { cp, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { removeDirectory, startTestService, type TestService, temporaryDirectory } from '../support/service.ts'

const root = fileURLToPath(new URL('../../clients/python', import.meta.url))
const version = spawnSync('python3', ['-c', 'import sys; print(sys.version_info >= (3, 9))'], { encoding: 'utf8' })
const hasPython = version.stdout?.trim() === 'True'
if (!hasPython)
  process.stderr.write('skipped: the tests of the Python package need a python3 of version 3.9 or later\n')

async function python(args: string[], environment: { PYTHONPATH?: string; API_KEY?: string } = {}) {
  const PYTHONPATH = environment.PYTHONPATH ?? join(root, 'src')
  const env = { ...process.env, PYTHONPATH, PYTHONDONTWRITEBYTECODE: '1', ...environment }
  const child = spawn('python3', args, { cwd: root, env })
  const output = { stdout: '', stderr: '' }
  child.stdout.on('data', (data) => (output.stdout += data))
  child.stderr.on('data', (data) => (output.stderr += data))
  const [code] = await once(child, 'close')
  return { code, ...output }
}

describe.skipIf(!hasPython)('the Python package', () => {
  let service: TestService
  const directory = temporaryDirectory()
  beforeAll(async () => {
    service = await startTestService()
  })
  afterAll(async () => {
    removeDirectory(directory)
    await service.stop()
  })

  test('passes its unit tests, and executes runs in processes', async () => {
    const { code, stderr } = await python(['-m', 'unittest', 'discover', '-s', 'tests'])
    expect(code, stderr).toBe(0)
    expect(stderr).toMatch(/Ran \d\d+ tests/)
  })

  test('has types that a type checker accepts, and that refuse wrong calls', { timeout: 120_000 }, async () => {
    const project = join(directory, 'types')
    await cp(fileURLToPath(new URL('python-types', import.meta.url)), project, { recursive: true })
    await cp(join(root, 'src/execution_service'), join(project, 'execution_service'), { recursive: true })
    const settings = { pythonVersion: '3.9', reportUnnecessaryTypeIgnoreComment: true, include: ['*.py', '*/*.py'] }
    await writeFile(join(project, 'pyrightconfig.json'), JSON.stringify(settings))
    const run = promisify(execFile)
    await run('npm', ['ci', '--ignore-scripts', '--no-audit', '--no-fund'], { cwd: project })
    const checked = await run('node_modules/.bin/pyright', [], { cwd: project }).catch((error) => error)
    expect(checked.stdout.trim()).toBe('0 errors, 0 warnings, 0 informations')
    if (spawnSync('python3', ['-c', 'import mypy']).status !== 0) return
    const mypy = await run('python3', ['-m', 'mypy', '--strict', '.'], { cwd: project }).catch((error) => error)
    expect(mypy.stdout).toMatch(/^Success: no issues found in \d+ source files\n$/)
  })

  test('is built into the same wheel each time, which Python imports', async () => {
    const builds = [join(directory, 'a'), join(directory, 'b')]
    const names = await Promise.all(builds.map((build) => python(['build_backend.py', build])))
    const [first = '', second = ''] = builds.map((build, index) => join(build, names[index]?.stdout.trim() ?? ''))
    expect(readFileSync(first)).toEqual(readFileSync(second))
    const code = 'import execution_service, execution_service.testing as t; print(t.__file__)'
    const imported = await python(['-c', code], { PYTHONPATH: first })
    expect(imported.stdout.trim(), imported.stderr).toBe(join(first, 'execution_service/testing.py'))
  })

  test('calls the service', { timeout: 60_000 }, async () => {
    const { key } = await service.createAccount()
    const called = await python(['tests/call_service.py', service.executionUrl], { API_KEY: key })
    expect(called.code, called.stderr).toBe(0)
    expect(JSON.parse(called.stdout)).toEqual({
      output: 'Hello, Ada!',
      types: ['log', 'progress', 'status'],
      status: 'succeeded',
      tags: ['a', 'b'],
      same: 1,
      timeout: 'Run ID has not ended in time. It continues.',
      cancelled: 'cancelled',
      invalid: [400, '/docs/errors#invalid-request', ['/variableData/name']],
      listed: [true],
      file: ['résumé.txt', 'text/plain', true],
      sameFile: true,
      again: ['Hello, Eve!', true],
      many: ['queued', 'queued'],
      bulk: 2,
      schedule: [60, true, ['hourly'], 'hourly'],
      triggered: 'succeeded',
      async: [['Hello, I!', 'Hello, J!', 'Hello, K!'], 'status', true],
    })
  })

  /** What a program prints as JSON that calls the service while a worker executes runs of these workflows. */
  async function callWithWorker(program: string, workflows: string) {
    const { key } = await service.createAccount()
    const env = { ...process.env, PYTHONPATH: join(root, 'src'), PYTHONDONTWRITEBYTECODE: '1', API_KEY: key }
    const command = ['-m', 'execution_service', 'worker', '--url', service.executionUrl, workflows]
    const worker = spawn('python3', command, { cwd: root, env })
    let log = ''
    worker.stderr.on('data', (data) => (log += data))
    const exited = once(worker, 'close')
    const called = await python([program, service.executionUrl], { API_KEY: key })
    worker.kill('SIGTERM')
    expect(called.code, called.stderr + log).toBe(0)
    expect(await exited, log).toEqual([0, null])
    process.stdout.write(called.stderr)
    return JSON.parse(called.stdout)
  }

  test('sends values of every type to a worker and back', { timeout: 120_000 }, async () => {
    const { changed, count } = await callWithWorker('tests/call_types.py', 'tests/types')
    expect(changed).toEqual({})
    expect(count).toBeGreaterThan(30)
  })

  test('executes runs of the service in a worker', { timeout: 120_000 }, async () => {
    expect(await callWithWorker('tests/call_worker.py', 'tests/workflows')).toEqual({
      events: [
        ['status', 'queued', null],
        ['status', 'running', null],
        ['log', 'printed', null],
        ['log', 'warned', null],
        ['step', 'compose', 'started'],
        ['step', 'compose', 'finished'],
        ['artifact', 'greeting.txt', null],
        ['status', 'succeeded', null],
      ],
      output: 'Hello, Ada!',
      artifact: 'Hello, Ada!',
      fail: ['failed', 'workflowFailed', 'no greeting'],
      error: ['fail', 'fail'],
      made: [true, true, true],
      awaited: [
        ['Hello, Ada!', 'Hello, Bob!', true, ['pid']],
        ['begun', 'gone on'],
      ],
      large: ['outputInvalid', 'OutputInvalid'],
      exit: ['failed', 'workflowExited', "The workflow's process exited with code 3."],
      stuck: ['timedOut', 'timeLimit', null],
      asked: 'Hello, Bob!',
      cancelled: 'cancelled',
      many: 50,
    })
  })
})
