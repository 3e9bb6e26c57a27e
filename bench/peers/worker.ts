/** A worker of a queue, by `node worker.ts QUEUE LOCATION SLOTS`. Sends the ids of the jobs that it has executed, with times. */
import { queues } from './queues.ts'

const [queue = '', location = '', slots = ''] = process.argv.slice(2)
let executed: [id: string, at: number][] = []

// In batches: a message for each job would cost more than some jobs.
setInterval(() => {
  if (executed.length > 0) process.send?.({ executed })
  executed = []
}, 20)

await queues[queue]?.work?.(location, Number(slots), ({ id }, at) => {
  executed.push([id, at ?? performance.timeOrigin + performance.now()])
})
process.send?.({ ready: true })
process.on('disconnect', () => process.exit())
