/** The order of starts and stops: what opens, what closes it, and what a start does when it fails. */
import { once } from 'node:events'
import { readdirSync, readlinkSync } from 'node:fs'
import type { AddressInfo } from 'node:net'
import { createServer } from 'node:net'
import { pino } from 'pino'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { Steps, serviceSteps, startService, startWorker } from '../../src/app.ts'
import { readConfig } from '../../src/config/config.ts'
import { ListenError } from '../../src/contract/listener.ts'
import { retryAtStart } from '../../src/domain/installation.ts'
import { StoreUnavailable } from '../../src/storage/store.ts'
import { readRoles } from '../../src/surfaces/roles.ts'
import { newDirectory, type Test } from '../support/domain.ts'
import { serviceSettings } from '../support/service.ts'
import { buildOnce } from '../support/snapshots.ts'

const log = pino({ level: 'silent' })

test('a start repeats what fails because the store is unavailable', async () => {
  const act = vi.fn(async () => 'done').mockRejectedValueOnce(new StoreUnavailable('busy'))
  expect(await retryAtStart(act)).toBe('done')
  expect(act).toHaveBeenCalledTimes(2)
})

test('a start does not repeat what fails for another reason', async () => {
  const act = vi.fn().mockRejectedValue(new Error('wrong password'))
  await expect(retryAtStart(act)).rejects.toThrow('wrong password')
  expect(act).toHaveBeenCalledTimes(1)
})

test('a service stops in the order that probes, workers, load balancers and followers need', () => {
  const steps = serviceSteps({ config: readConfig({}), log, command: '', roles: readRoles([]), options: {} })
  expect(Object.entries(steps.stopOrder)).toEqual([
    ['unready', ['readiness', 'compilation']],
    ['workerStop', ['worker']],
    ['drain', ['listeners']],
    ['wait', ['readiness']],
    ['followers', ['domain']],
    ['work', ['listeners', 'maintenance', 'webhooks', 'worker']],
    ['apiKeys', ['domain']],
    ['refusals', ['domain']],
    ['management', ['listeners']],
    ['tracing', ['tracing']],
    ['store', ['store']],
  ])
})

describe('steps', () => {
  const closed: string[] = []
  const close = (name: string) => () => void closed.push(name)
  const openTwo = () =>
    new Steps()
      .step('a', () => ({ a: 1 }), { store: close('a'), drain: close('a drains') })
      .step('b', async ({ a }) => ({ b: a + 1 }), { work: close('b') })

  test('get what those before them have opened, and close by phase', async () => {
    closed.length = 0
    const { opened, close } = await openTwo().open()
    expect(opened).toEqual({ a: 1, b: 2 })
    await close()
    expect(closed).toEqual(['a drains', 'b', 'a'])
  })

  test('close what was opened when one of them fails, and report its error', async () => {
    closed.length = 0
    const fail = () => {
      throw new Error('no port')
    }
    const steps = openTwo().step('c', fail, { work: close('c') })
    await expect(steps.open()).rejects.toThrow('no port')
    expect(closed).toEqual(['a drains', 'b', 'a'])
  })

  test('close the others when one of them cannot be closed, and report the error', async () => {
    closed.length = 0
    const steps = openTwo().step('c', () => ({}), { unready: () => Promise.reject(new Error('stuck')) })
    await expect((await steps.open()).close()).rejects.toThrow('stuck')
    expect(closed).toEqual(['a drains', 'b', 'a'])
  })
})

describe('a start that finds its management port in use', () => {
  const server = createServer()
  let port = 0

  beforeAll(async () => {
    await once(server.listen(0, '127.0.0.1'), 'listening')
    port = (server.address() as AddressInfo).port
  })
  afterAll(() => void server.close())

  async function settings(test: Test) {
    const directory = await newDirectory(test)
    const environment = { ...serviceSettings({ DATA_DIR: directory }), MANAGEMENT_PORT: String(port) }
    return { directory, config: readConfig({ ...environment, HOST: '127.0.0.1' }) }
  }

  test('closes everything that the service has opened', async (test) => {
    const { directory, config } = await settings(test)
    const starting = startService(config, log, '', readRoles(['execution,dashboard']), { build: buildOnce })
    await expect(starting).rejects.toThrow(ListenError)
    expect(openFiles(directory)).toEqual([])
  })

  test('closes everything that the worker has opened', async (test) => {
    const { directory, config } = await settings(test)
    const onFatal = vi.fn()
    await expect(startWorker(config, log, { isManaged: true, onFatal })).rejects.toThrow(ListenError)
    expect(openFiles(directory)).toEqual([])
  })
})

/** Files in the directory that this process has open. */
function openFiles(directory: string): string[] {
  return readdirSync('/proc/self/fd').flatMap((descriptor) => {
    try {
      const path = readlinkSync(`/proc/self/fd/${descriptor}`)
      return path.startsWith(directory) ? [path] : []
    } catch {
      return []
    }
  })
}
