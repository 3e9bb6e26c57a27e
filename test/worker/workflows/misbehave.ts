/** Harms its own process in different ways. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { appendFileSync, closeSync, writeSync } from 'node:fs'
import { defineWorkflow } from 'execution-service/workflow'

const bytes: unknown[] = []

const ways = {
  exit: () => process.exit(0),
  exhaust: () => {
    for (;;) bytes.push(new Array(100_000).fill(Math.random()).map(String))
  },
  throwLater: async () => {
    setTimeout(() => {
      throw new Error('thrown when unhandled')
    }, 5)
    await new Promise(() => setInterval(() => {}, 1000))
  },
  rejectUnhandled: () => {
    Promise.reject(new Error('rejected when unhandled'))
    return 'as if nothing had happened'
  },
  throwNoError: () => {
    throw { code: 7 }
  },
  returnNoJson: () => 10n,
  closeChannel: async () => {
    closeSync(3)
    await new Promise(() => setInterval(() => {}, 1000))
  },
  writeToChannel: async () => {
    writeSync(3, 'null\n')
    await new Promise(() => setInterval(() => {}, 1000))
  },
  writeEndlessMessage: async () => {
    const chunk = Buffer.alloc(2 ** 16, ' ')
    for (let bytes = 0; bytes < 33 * 2 ** 20; ) {
      try {
        bytes += writeSync(3, chunk)
      } catch {
        // The worker has yet to read.
        await new Promise((resolve) => setTimeout(resolve, 1))
      }
    }
    await new Promise(() => setInterval(() => {}, 1000))
  },
  writeEndlessLine: async () => {
    for (let chunk = 0; chunk < 32; chunk += 1) {
      await new Promise((resolve) => process.stdout.write(Buffer.alloc(2 ** 20, ' '), resolve))
    }
    throw new Error('written')
  },
  /** Outside the heap. */
  allocate: async () => {
    for (;;) {
      bytes.push(Buffer.alloc(2 ** 24, 1))
      await new Promise((resolve) => setTimeout(resolve, 10))
    }
  },
  allocateInChild: async () => {
    const script = `const bytes = []; setInterval(() => bytes.push(Buffer.alloc(2 ** 24, 1)), 10)`
    await once(spawn(process.execPath, ['-e', script]), 'exit')
    await new Promise(() => setInterval(() => {}, 1000))
  },
  /** Returns, but leaves a timer that would disturb the next run. */
  leaveBehind: (file: string) => {
    setInterval(() => {
      // biome-ignore lint/suspicious/noConsole: the line must appear in no other run's log.
      console.log('written after the run has returned')
      appendFileSync(file, `${process.pid}\n`)
    }, 5)
    return 'gone'
  },
} satisfies Record<string, (file: string) => unknown>

export default defineWorkflow({
  id: 'misbehave',
  version: '1.0.0',
  title: 'Misbehave',
  variables: {
    type: 'object',
    required: ['how'],
    properties: { how: { enum: Object.keys(ways) }, file: { type: 'string', default: '' } },
  },
  output: {},
  run: ({ variables }) => ways[variables.how as keyof typeof ways](variables.file ?? ''),
})
