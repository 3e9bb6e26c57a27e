/** The service also runs on macOS and on arm64: few files use what only Linux has, and each works without it. */
import { globSync, readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import packageJson from '../../package.json' with { type: 'json' }

/** What only Linux has, by file, and what happens without it. */
const allowed: Record<string, string> = {
  'commands/doctor/service.ts': 'a port in use is reported without its owner',
  'commands/hidden-environment.ts': 'there is no file that shows the environment',
  'commands/launcher.ts': 'Node 24 is not installed by itself, and the message says so',
  'domain/workflows/executor-users.ts': 'only used by root on Linux, with EXECUTOR_UIDS',
  'domain/workflows/process-cgroup.ts': 'without control groups, a process without its environment is not found',
  'domain/workflows/process-reaper.ts': 'processes that workflows detach are not found; the worker warns',
  'storage/key-file.ts': 'Windows has no modes of files',
  'worker/browser/find-browser.ts': 'the Chromium from npm is for Linux x64; others are found or installed',
  'worker/browser/host-process.ts': 'shared memory of Chromium is in files',
  'worker/executors/executor.ts': 'the kernel ends any process when memory is short',
  'worker/executors/process-memory.ts': 'WORKFLOW_MEMORY_MB limits the heap only; the worker warns',
}

const linuxOnly =
  /\/proc\b|process\.platform|\/dev\/shm|\/sys\/|\bcgroup|setpriority|inotify|epoll|prlimit|'ps'|'setsid'/

/** Comments may name them. */
const codeOf = (file: string) => readFileSync(`src/${file}`, 'utf8').replaceAll(/\/\*[\s\S]*?\*\/|^\s*\/\/.*$/gm, '')

test('only these files use what Linux alone has', () => {
  const files = globSync('**/*.ts', { cwd: 'src' }).filter((file) => linuxOnly.test(codeOf(file)))
  expect(files.filter((file) => !/^worker\/worker\.ts$/.test(file)).toSorted()).toEqual(Object.keys(allowed))
})

interface Manifest {
  os?: string[]
  cpu?: string[]
  optionalDependencies?: Record<string, string>
}

const lock = JSON.parse(readFileSync('package-lock.json', 'utf8')) as { packages: Record<string, Manifest> }

test('no dependency of the service is for Linux or x64 only', () => {
  const names = Object.keys(packageJson.dependencies)
  const restricted = names.filter((name) => {
    const { os, cpu } = lock.packages[`node_modules/${name}`] ?? {}
    return os !== undefined || cpu !== undefined
  })
  expect(restricted).toEqual([])
})

test('native code of dependencies exists for macOS and Linux, on x64 and arm64', () => {
  const platforms = ['darwin-arm64', 'darwin-x64', 'linux-arm64', 'linux-x64']
  const native = Object.keys(packageJson.dependencies).flatMap((name) => {
    const bindings = Object.keys(lock.packages[`node_modules/${name}`]?.optionalDependencies ?? {})
    return bindings.some((each) => /linux-x64/.test(each)) ? [{ name, bindings }] : []
  })
  expect(native.map(({ name }) => name)).toEqual(['@node-rs/argon2', 'rolldown'])
  for (const { name, bindings } of native) {
    const missing = platforms.filter((platform) => !bindings.some((each) => each.includes(platform)))
    expect({ name, missing }).toEqual({ name, missing: [] })
  }
})
