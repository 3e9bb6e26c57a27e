/** The thread of a world: replaces its time and randomness, and only then imports the service. */
import { enableCompileCache, flushCompileCache } from 'node:module'
import { parentPort } from 'node:worker_threads'
import { SeededRandomness } from './seeded-randomness.ts'
import { answerCalls, type Channel, createCaller } from './thread-calls.ts'
import { VirtualClock } from './virtual-clock.ts'
import type { World, WorldContent, WorldOptions } from './world.ts'

if (!parentPort) throw new Error('This module is the start of a thread.')
const port: Channel = parentPort
// Compiling the service takes half of a start.
enableCompileCache()
const clock = new VirtualClock(0)
clock.install()
const randomness = new SeededRandomness('')
randomness.install()
// With what a start of the service imports, so that a thread that waits for its world has everything.
const [{ World: WorldClass }] = await Promise.all([import('./world.ts'), import('../surfaces/serve-surfaces.ts')])
// Node writes it when a thread ends by itself; this one is terminated.
flushCompileCache()
let world: World | undefined
const content = Promise.withResolvers<WorldContent>()

function opened(): World {
  if (!world) throw new Error('The world is not open.')
  return world
}

const call = createCaller(port)
const changes = {
  reset: () => call('reset', undefined),
  snapshot: (name: string) => call('snapshot', name),
  restore: (name: string) => call('restore', name),
  listSnapshots: () => call('listSnapshots', undefined),
}

answerCalls(port, {
  async open(options: WorldOptions) {
    clock.set(options.saved?.now ?? options.now - 1)
    randomness.seek(options.seed, options.saved?.randomness ?? 0)
    const dependencies = { clock, randomness, changes, content: () => content.promise }
    world = new WorldClass(dependencies as ConstructorParameters<typeof WorldClass>[0], options)
    return world.open()
  },
  begin: async (given: WorldContent) => content.resolve(given),
  ready: async () => {},
  now: async () => clock.now(),
  advanceTo: (to: number) => opened().driver.advanceTo(to),
  setSpeed: async (speed: number) => opened().driver.setSpeed(speed),
  save: () => opened().save(),
  knows: (credential: string) => opened().knows(credential),
  retire: () => opened().retire(),
  close: () => opened().close(),
})
