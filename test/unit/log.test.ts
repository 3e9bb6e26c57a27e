/** How errors are logged. */
import { spawnSync } from 'node:child_process'
import { expect, test } from 'vitest'

const program = `
  import { openLog } from './src/telemetry/log.ts'
  import { StoreUnavailable } from './src/storage/store.ts'
  const log = openLog({ LOG_LEVEL: 'info' })
  const cause = new Error('connect ECONNREFUSED 127.0.0.1:5432')
  log.warn({ err: new StoreUnavailable(cause.message, { cause }) }, 'write failed; retrying')
  log.error({ err: new TypeError('a bug') }, 'request failed')
  log.flush()
`

const run = (source: string) => spawnSync(process.execPath, ['--input-type=module', '-e', source], { encoding: 'utf8' })

test('a line break in a value begins no line', () => {
  const forged = 'a\n{"level":60,"msg":"forged"}\r\u2028b'
  const source = program
    .replace("'a bug'", JSON.stringify(forged))
    .replace("'request failed'", "'request failed', '\\n{}'")
  const lines = run(source).stdout.trim().split('\n')
  expect(lines.map((line) => JSON.parse(line).msg)).toEqual(['write failed; retrying', 'request failed'])
  expect(JSON.parse(lines[1] ?? '').err.message).toBe(forged)
})

test('`StoreUnavailable` is logged without its stack, other errors with it', () => {
  const { stdout, stderr } = run(program)
  expect(stderr).toBe('')
  const [unavailable, bug] = stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line).err)
  expect(unavailable).toEqual({ type: 'StoreUnavailable', message: 'connect ECONNREFUSED 127.0.0.1:5432' })
  expect(bug).toMatchObject({ type: 'TypeError', message: 'a bug', stack: expect.stringContaining(' at ') })
})
