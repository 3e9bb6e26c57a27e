/** Mounts file systems that tests may fill up or cut the power of. Requires root. */
import { execFileSync } from 'node:child_process'
import { chmodSync, mkdirSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Test } from './domain.ts'
import { removeDirectory, temporaryDirectory } from './service.ts'

const run = (program: string, ...args: string[]) => execFileSync(program, args, { stdio: 'pipe', encoding: 'utf8' })

export interface Disk {
  directory: string
  /** Simulates a power failure: data that was not synced is lost, and writing fails. */
  cutPower(): void
  /** Mounts the disk again with its contents. No file on it may be open. */
  restorePower(): void
}

/** Returns why file systems cannot be mounted here; `undefined` when they can. */
export function whyMountingFails(): string | undefined {
  if (process.platform !== 'linux') return 'mounting is supported on Linux only'
  if (process.getuid?.() !== 0) return 'mounting requires root'
  const directory = temporaryDirectory()
  try {
    run('mount', '-t', 'tmpfs', '-o', 'size=64k', 'tmpfs', directory)
    run('umount', directory)
    return undefined
  } catch (error) {
    return `mounting fails here (${lastLine(error)})`
  } finally {
    removeDirectory(directory)
  }
}

/** Returns why power failures cannot be simulated here; `undefined` when they can. */
export function whyPowerCutsFail(): string | undefined {
  const reason = whyMountingFails()
  if (reason) return reason
  const missing = ['losetup', 'mkfs.ext4', 'python3'].find((program) => !isInstalled(program))
  if (missing) return `${missing} is not installed`
  let disk: ReturnType<typeof mountDisk> | undefined
  try {
    disk = mountDisk()
    disk.cutPower()
    return undefined
  } catch (error) {
    return `an ext4 file system cannot be mounted and shut down here (${lastLine(error)})`
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

/** Mounts an empty file system of this size in memory. */
export function newSmallMount(test: Test, megabytes: number): string {
  const directory = temporaryDirectory()
  run('mount', '-t', 'tmpfs', '-o', `size=${megabytes}m`, 'tmpfs', directory)
  test.onTestFinished(() => {
    run('umount', '--lazy', directory)
    removeDirectory(directory)
  })
  return directory
}

/** Mounts an empty ext4 file system in a file. */
export function newDisk(test: Test): Disk {
  const { remove, ...disk } = mountDisk()
  test.onTestFinished(remove)
  return disk
}

/** Flag 2 is GOING_FLAGS_NOLOGFLUSH, which does not even flush the file system's journal. */
const shutdown = `
import fcntl, os, struct, sys
EXT4_IOC_SHUTDOWN = 0x8004587D
fcntl.ioctl(os.open(sys.argv[1], os.O_RDONLY), EXT4_IOC_SHUTDOWN, struct.pack('I', 2))`

const diskBytes = 512 * 1024 ** 2

function mountDisk() {
  const parent = temporaryDirectory()
  const directory = join(parent, 'mount')
  mkdirSync(directory)
  // The database server runs as another user, who must be able to enter the directory.
  chmodSync(parent, 0o711)
  let image = join(parent, 'image')
  writeFileSync(image, '')
  truncateSync(image, diskBytes)
  run('mkfs.ext4', '-q', '-F', image)
  // Unmounting removes the loop device.
  const mount = () => run('mount', '-o', 'loop', image, directory)
  // Killed processes may close their files a moment later.
  const unmount = () =>
    run('sh', '-c', 'for i in $(seq 50); do umount "$0" && exit; sleep 0.2; done; exit 1', directory)
  mount()
  let isMounted = true
  return {
    directory,
    cutPower: () => void run('python3', '-c', shutdown, directory),
    restorePower() {
      unmount()
      isMounted = false
      // A copy, since other mount namespaces may keep the old mount, which stays shut down.
      const copy = `${image}-again`
      run('cp', '--sparse=always', image, copy)
      rmSync(image)
      image = copy
      mount()
      isMounted = true
    },
    remove() {
      if (isMounted) unmount()
      removeDirectory(parent)
    },
  }
}

function lastLine(error: unknown): string {
  const { stderr, message } = error as { stderr?: string; message: string }
  return (stderr || message).trim().split('\n').at(-1) ?? message
}
