/** `npm run demo` that is stopped, killed or cannot go on: it takes everything with it, and says why in one sentence. */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { expectNothingLeft, findDemoProcesses, startDemo, temporaryDirectory } from '../support/demo.ts'

test('leaves nothing behind when it is stopped on the way', async () => {
  const demo = await startDemo([])
  await demo.waitForOutput('running, attempt 1')
  demo.child.kill('SIGTERM')
  expect(await demo.exitCode, demo.output()).toBe(1)
  await expectNothingLeft(demo)
})

test('takes its service with it when it is killed, and the browser of its runs', async () => {
  const demo = await startDemo([], { SHUTDOWN_SECONDS: '1' })
  await demo.waitForOutput('The next run')
  expect((await findDemoProcesses(demo)).join()).toContain('chrom')
  demo.child.kill('SIGKILL')
  await demo.exitCode
  await expect.poll(() => findDemoProcesses(demo)).toEqual([])
})

test('says which workflows it lacks', async () => {
  const WORKFLOWS_DIR = await temporaryDirectory()
  const demo = await startDemo(['--once'], { WORKFLOWS_DIR })
  expect(await demo.exitCode).toBe(1)
  expect(demo.output()).toMatch(
    /\n\nThe demo needs check-links, .*, shop-orders, which WORKFLOWS_DIR does not have: unset WORKFLOWS_DIR\.\n$/,
  )
  await expectNothingLeft(demo)
})

test('gives the reason that the service gave for not starting', async () => {
  const WORKFLOWS_DIR = join(await temporaryDirectory(), 'missing')
  const demo = await startDemo(['--once'], { WORKFLOWS_DIR })
  expect(await demo.exitCode).toBe(1)
  expect(demo.output()).toMatch(/\n\nWORKFLOWS_DIR \(.*missing\) cannot be read: ENOENT.*\n$/)
  await expectNothingLeft(demo)
})

test('says so when the service dies on the way', async () => {
  const DATA_DIR = await temporaryDirectory()
  const demo = await startDemo(['--once'], { DATA_DIR })
  await demo.waitForOutput('running, attempt 1')
  const log = (await readFile(join(DATA_DIR, 'service.log'), 'utf8')).trim().split('\n')
  const { pid } = log.map((line) => JSON.parse(line)).find(({ msg }) => msg === 'service ready')
  process.kill(pid, 'SIGKILL')
  expect(await demo.exitCode).toBe(1)
  expect(demo.output()).toMatch(/\n\nThe service has ended \(SIGKILL\)\.\n$/)
  await expectNothingLeft(demo)
})
