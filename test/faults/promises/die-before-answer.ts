/**
 * Loaded into the service's process: kills it in the moment in which it begins an answer with 202, once the file exists
 * that DIE_BEFORE_ANSWER names.
 */
import { existsSync } from 'node:fs'
import { ServerResponse } from 'node:http'

const { writeHead } = ServerResponse.prototype

ServerResponse.prototype.writeHead = function (this: ServerResponse, ...args: unknown[]) {
  if (args[0] === 202 && existsSync(process.env.DIE_BEFORE_ANSWER ?? '')) process.kill(process.pid, 'SIGKILL')
  return writeHead.apply(this, args as Parameters<typeof writeHead>)
} as typeof writeHead
