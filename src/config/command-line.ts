/** Names the commands of this installation as people start them, for messages, pages and logs. */
import { basename, dirname, extname } from 'node:path'

/** Whether this is the published package, whose modules are compiled. */
export const isPublished = extname(import.meta.url) === '.js'

/** @param command with its arguments, such as `worker`. */
export function shellCommand(command: string): string {
  if (!isPublished) return `npm run cli -- ${command}`
  return isOnPath(process.argv[1] ?? '') ? `execution-service ${command}` : `npx execution-service ${command}`
}

/** In the image or after a global installation, the program is a link outside of a project's packages. */
function isOnPath(program: string): boolean {
  return basename(program) === 'execution-service' && basename(dirname(program)) !== '.bin'
}
