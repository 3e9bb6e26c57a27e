/** What the log says of errors. */
import { spawnSync } from 'node:child_process'
import { expect, test } from 'vitest'

const program = `
  import { openLog } from './src/telemetry/log.ts'
  import { StoreUnavailable } from './src/storage/store.ts'
  const log = openLog({ LOG_LEVEL: 'info' })
  const cause = new Error('connect ECONNREFUSED 127.0.0.1:5432')
  log.warn({ err: new StoreUnavailable(cause.message, { cause }) }, 'it is tried again')
  log.error({ err: new TypeError('a fault') }, 'a page failed')
  log.flush()
`

test('a store that is away takes one short line, and a fault its whole stack', () => {
  const { stdout, stderr } = spawnSync(process.execPath, ['--input-type=module', '-e', program], { encoding: 'utf8' })
  expect(stderr).toBe('')
  const [away, fault] = stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line).err)
  expect(away).toEqual({ type: 'StoreUnavailable', message: 'connect ECONNREFUSED 127.0.0.1:5432' })
  expect(fault).toMatchObject({ type: 'TypeError', message: 'a fault', stack: expect.stringContaining(' at ') })
})
