/** A thread that ends its process when the worker has died: a blocked workflow would not notice by itself. */
import { workerData } from 'node:worker_threads'

setInterval(() => {
  if (process.ppid !== workerData) process.kill(process.pid, 'SIGKILL')
}, 500)
