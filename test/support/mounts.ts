/** File systems of a test's own that it may fill up or cut the power of. Mounting is for root alone. */
import { execFileSync } from 'node:child_process'
import { chmodSync, mkdirSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Test } from './domain.ts'
import { removeDirectory, temporaryDirectory } from './service.ts'

const run = (program: string, ...args: string[]) => execFileSync(program, args, { stdio: 'pipe', encoding: 'utf8' })

export interface Disk {
  directory: string
  /** As when the power fails: what was not written by fsync is gone, and nothing can be written any more. */
  cutPower(): void
  /** Mounts the disk again, with what is on it. Nobody may have a file of it open. */
  restorePower(): void
}

/** Why file systems cannot be mounted here; `undefined` when they can. */
export function whyMountingFails(): string | undefined {
  if (process.platform !== 'linux') return 'mounting is tried on Linux alone'
  if (process.getuid?.() !== 0) return 'mounting is for root alone'
  const directory = temporaryDirectory()
  try {
    run('mount', '-t', 'tmpfs', '-o', 'size=64k', 'tmpfs', directory)
    run('umount', directory)
    return undefined
  } catch (error) {
    return `nothing can be mounted here (${sentenceOf(error)})`
  } finally {
    removeDirectory(directory)
  }
}

/** Why the power of a disk cannot be cut here; `undefined` when it can. */
export function whyPowerCutsFail(): string | undefined {
  const refused = whyMountingFails()
  if (refused) return refused
  const missing = ['losetup', 'mkfs.ext4', 'python3'].find((program) => !isInstalled(program))
  if (missing) return `${missing} is not installed`
  let disk: ReturnType<typeof mountDisk> | undefined
  try {
    disk = mountDisk()
    disk.cutPower()
    return undefined
  } catch (error) {
    return `no ext4 of its own can be mounted and shut down here (${sentenceOf(error)})`
  } finally {
    disk?.remove()
  }
}

export function isInstalled(program: string): boolean {
  try {
    run('sh', '-c', `command -v ${program}`)
    return true
  } catch {
    return false
  }
}

/** An empty file system in memory that holds so many megabytes. */
export function newSmallMount(test: Test, megabytes: number): string {
  const directory = temporaryDirectory()
  run('mount', '-t', 'tmpfs', '-o', `size=${megabytes}m`, 'tmpfs', directory)
  test.onTestFinished(() => {
    run('umount', '--lazy', directory)
    removeDirectory(directory)
  })
  return directory
}

/** An empty ext4 in a file. */
export function newDisk(test: Test): Disk {
  const { remove, ...disk } = mountDisk()
  test.onTestFinished(remove)
  return disk
}

/** GOING_FLAGS_NOLOGFLUSH: not even the file system's own journal is written out. */
const shutdown = `
import fcntl, os, struct, sys
EXT4_IOC_SHUTDOWN = 0x8004587D
fcntl.ioctl(os.open(sys.argv[1], os.O_RDONLY), EXT4_IOC_SHUTDOWN, struct.pack('I', 2))`

const diskBytes = 512 * 1024 ** 2

function mountDisk() {
  const place = temporaryDirectory()
  const directory = join(place, 'mount')
  mkdirSync(directory)
  // A database server has a user of its own, who passes through.
  chmodSync(place, 0o711)
  let image = join(place, 'image')
  writeFileSync(image, '')
  truncateSync(image, diskBytes)
  run('mkfs.ext4', '-q', '-F', image)
  // The loop device goes with the mount.
  const mount = () => run('mount', '-o', 'loop', image, directory)
  const unmount = () => run('umount', directory)
  mount()
  let isMounted = true
  return {
    directory,
    cutPower: () => void run('python3', '-c', shutdown, directory),
    restorePower() {
      unmount()
      isMounted = false
      // A copy of what is on the disk: whoever else on this machine still knows the old mount keeps that one without power.
      const copy = `${image}-again`
      run('cp', '--sparse=always', image, copy)
      rmSync(image)
      image = copy
      mount()
      isMounted = true
    },
    remove() {
      if (isMounted) unmount()
      removeDirectory(place)
    },
  }
}

function sentenceOf(error: unknown): string {
  const { stderr, message } = error as { stderr?: string; message: string }
  return (stderr || message).trim().split('\n').at(-1) ?? message
}
