/** Hides secrets that this process got in its environment from other processes of its user. */
import { closeSync, openSync, readFileSync, writeSync } from 'node:fs'
import { isSecretVariable } from '../config/config.ts'

/** `env_start` in `/proc/self/stat`, counted from the field after the process's name (proc(5): field 50). */
const environmentField = 47

/**
 * Linux shows the environment that a process was started with, in `/proc/<pid>/environ`, whatever changes in
 * `process.env`. Its memory is overwritten; `process.env` keeps copies. Where that is impossible, nothing changes.
 */
export function hideSecrets(): void {
  const names = Object.keys(process.env).filter(isSecretVariable)
  if (names.length === 0) return
  const values = names.map((name) => [name, process.env[name]])
  // Even an equal value is stored elsewhere.
  Object.assign(process.env, Object.fromEntries(values))
  try {
    const stat = readFileSync('/proc/self/stat', 'latin1')
    const start = Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[environmentField])
    const memory = openSync('/proc/self/mem', 'r+')
    let position = start
    for (const entry of readFileSync('/proc/self/environ', 'latin1').split('\0')) {
      const [name = ''] = entry.split('=', 1)
      const hidden = Buffer.alloc(entry.length - name.length, '=')
      if (names.includes(name)) writeSync(memory, hidden, 0, hidden.length, position + name.length)
      position += entry.length + 1
    }
    closeSync(memory)
  } catch {
    // Not Linux, or `/proc` is not mounted.
  }
}
