/**
 * Preloaded into the service's process: kills it just before it sends a 202, once the file in DIE_BEFORE_RESPONSE exists.
 */
import { existsSync } from 'node:fs'
import { ServerResponse } from 'node:http'

const { writeHead } = ServerResponse.prototype

ServerResponse.prototype.writeHead = function (this: ServerResponse, ...args: unknown[]) {
  if (args[0] === 202 && existsSync(process.env.DIE_BEFORE_RESPONSE ?? '')) process.kill(process.pid, 'SIGKILL')
  return writeHead.apply(this, args as Parameters<typeof writeHead>)
} as typeof writeHead
