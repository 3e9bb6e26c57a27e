/** Which process listens on a port, as far as Linux tells this user. */
import { readdir, readFile, readlink } from 'node:fs/promises'

export interface PortOwner {
  pid: number
  /** As `ps` shows it. */
  name: string
  /** The paths of its open files. */
  files: ReadonlySet<string>
}

/** The state of a socket that listens, in proc(5). */
const listening = '0A'

export async function portOwner(port: number): Promise<PortOwner | undefined> {
  const sockets = new Set((await inodesOf(port)).map((inode) => `socket:[${inode}]`))
  if (sockets.size === 0) return undefined
  const pids = (await readdir('/proc').catch(() => [])).filter((name) => /^\d+$/.test(name)).map(Number)
  for (const pid of pids) {
    const files = new Set(await filesOf(pid))
    if ([...sockets].some((socket) => files.has(socket))) return { pid, name: await nameOf(pid), files }
  }
  return undefined
}

/** Of sockets that listen on the port, on any address. */
async function inodesOf(port: number): Promise<string[]> {
  const hexadecimal = port.toString(16).toUpperCase().padStart(4, '0')
  const tables = await Promise.all(['tcp', 'tcp6'].map((name) => read(`/proc/net/${name}`)))
  return tables
    .flatMap((table) => table.split('\n').map((line) => line.trim().split(/\s+/)))
    .filter(([, local = '', , state]) => local.endsWith(`:${hexadecimal}`) && state === listening)
    .map((columns) => columns[9] ?? '')
}

/** Of other users' processes, root alone sees any. */
async function filesOf(pid: number): Promise<string[]> {
  const descriptors = await readdir(`/proc/${pid}/fd`).catch(() => [])
  return Promise.all(descriptors.map((name) => readlink(`/proc/${pid}/fd/${name}`).catch(() => '')))
}

/** The program and, for an interpreter, what it runs. No further arguments, which may be secret. */
async function nameOf(pid: number): Promise<string> {
  return (await read(`/proc/${pid}/comm`)).trim() || 'a program'
}

function read(path: string): Promise<string> {
  return readFile(path, 'utf8').catch(() => '')
}
