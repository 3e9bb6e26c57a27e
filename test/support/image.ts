/**
 * Builds images without Docker: executes every instruction of a Dockerfile in a directory for each stage, in a mount
 * namespace whose root that directory is. The system is that of this machine, read-only, with the Node of npm: the base
 * image itself is not needed.
 */
import { type ChildProcess, execFile, execFileSync, spawn, spawnSync } from 'node:child_process'
import { cpSync, existsSync, mkdirSync, realpathSync, symlinkSync, writeFileSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import { promisify } from 'node:util'
import { contextPaths, type Instruction, isInBuildContext, readStages, type Stage } from './dockerfile.ts'
import { temporaryDirectory } from './service.ts'

export interface Image {
  /** The root of the file tree. Of the directories of the base image, it has what the build has added. */
  root: string
  environment: Record<string, string>
  workingDirectory: string
  user: string
  entrypoint: string[]
  command: string[]
  healthCheck: string[]
}

const run = promisify(execFile)

/** Directories on the outside by their path in the container. */
type Volumes = Record<string, { path: string; readOnly?: boolean }>

/** Of the machine, such as certificates for the registry, without what npm and Vitest have set. */
const machineVariables = Object.fromEntries(
  Object.entries(process.env).filter(([name]) => /proxy|NODE_EXTRA_CA_CERTS|SSL_CERT|npm_config_registry/i.test(name)),
)

const isRoot = process.getuid?.() === 0

/** Other users can become root in a user namespace, if the machine gives them a range of further users. */
const unshare = ['unshare', '--mount', '--propagation', 'private', ...(isRoot ? [] : ['--map-root-user', '--map-auto'])]

/** Returns why images cannot be built here; `undefined` when they can. */
export function whyBuildingFails(): string | undefined {
  if (process.platform !== 'linux') return 'it needs the namespaces of Linux'
  const attempt =
    'mount -t tmpfs none /mnt && mkdir /mnt/a && chown 1000:1000 /mnt/a && chroot --userspec=1000:1000 / true'
  const { status, stderr } = spawnSync('sh', ['-c', `exec ${unshare.join(' ')} sh -c '${attempt}'`], {
    encoding: 'utf8',
  })
  return status === 0 ? undefined : `this user may not mount in a namespace: ${stderr.trim()}`
}

/**
 * Builds the stage and those that it needs. Never blocks the thread for long: a worker of Vitest that does not answer for
 * a minute fails the run.
 * @param arguments_ values of `ARG`.
 */
export async function buildImage(
  target: string | undefined,
  built: Map<string, Image>,
  arguments_: Record<string, string>,
): Promise<Image> {
  const stages = readStages()
  const stage = target === undefined ? stages.at(-1) : stages.find(({ name }) => name === target)
  if (!stage) throw new Error(`The Dockerfile has no stage ${target}.`)
  const done = built.get(stage.name ?? '')
  if (done) return done
  const needed = new Set([stage.base, ...stage.instructions.map(({ flags }) => flags.from)])
  for (const { name } of stages) if (name !== undefined && needed.has(name)) await buildImage(name, built, arguments_)
  const base = built.get(stage.base)
  if (base && stage.instructions.length === 0) return base
  const image = await startImage(stage, built)
  const variables: Record<string, string> = {}
  for (const instruction of stage.instructions) {
    if (instruction.keyword === 'ARG') variables[instruction.rest] = arguments_[instruction.rest] ?? ''
    else await apply(image, instruction, variables, built)
  }
  built.set(stage.name ?? '', image)
  return image
}

async function startImage({ base }: Stage, built: Map<string, Image>): Promise<Image> {
  const root = join(temporaryDirectory(), 'root')
  const image = built.get(base)
  if (image) {
    await copy(image.root, root)
    return { ...structuredClone(image), root }
  }
  if (base !== 'node:24-slim') throw new Error(`The base image ${base} is not known.`)
  for (const directory of ['app', 'tmp', 'root/.npm', 'usr/local/bin'])
    mkdirSync(join(root, directory), { recursive: true })
  const bin = join(root, 'usr/local/bin')
  cpSync(process.execPath, join(bin, 'node'))
  const npm = execFileSync('sh', ['-c', 'readlink -f "$(command -v npm)"'], { encoding: 'utf8' }).trim()
  for (const name of ['npm', 'npx']) symlinkSync(join(dirname(npm), `${name}-cli.js`), join(bin, name))
  return {
    root,
    environment: { PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin' },
    workingDirectory: '/',
    user: 'root',
    entrypoint: [],
    command: ['node'],
    healthCheck: [],
  }
}

/** @throws {Error} for an instruction that this does not execute as Docker does. */
async function apply(
  image: Image,
  { keyword, flags, rest }: Instruction,
  variables: Record<string, string>,
  built: Map<string, Image>,
): Promise<void> {
  const actions: Record<string, () => void | Promise<void>> = {
    WORKDIR: () => {
      image.workingDirectory = resolve(image.workingDirectory, rest)
      mkdirSync(join(image.root, image.workingDirectory), { recursive: true })
    },
    COPY: () => copyInto(image, rest.split(/ +/), flags.from === undefined ? undefined : built.get(flags.from)?.root),
    RUN: () => runInside(image, rest, variables),
    ENV: () => {
      for (const [, name = '', value = ''] of rest.matchAll(/(\w+)=(\S+)/g)) image.environment[name] = value
    },
    USER: () => {
      image.user = rest
    },
    ENTRYPOINT: () => {
      image.entrypoint = JSON.parse(rest)
      image.command = []
    },
    CMD: () => {
      image.command = JSON.parse(rest)
    },
    HEALTHCHECK: () => {
      image.healthCheck = JSON.parse(rest.replace(/^CMD +/, ''))
    },
    // These describe the image and change nothing in it.
    EXPOSE: () => undefined,
    STOPSIGNAL: () => undefined,
  }
  const action = actions[keyword]
  if (!action) throw new Error(`The instruction ${keyword} is not known.`)
  await action()
}

/** The contents of directories, and files, are copied into the last path. */
async function copyInto(image: Image, paths: string[], from: string | undefined): Promise<void> {
  const target = join(image.root, resolve(image.workingDirectory, paths.at(-1) ?? ''))
  for (const path of paths.slice(0, -1)) {
    if (from !== undefined) await copy(join(from, path), target)
    else if (path === '.') for (const each of contextPaths()) copyFromContext(each, join(target, each))
    else copyFromContext(path, join(target, path))
  }
}

function copyFromContext(path: string, target: string): void {
  if (!isInBuildContext(path)) throw new Error(`.dockerignore excludes ${path}.`)
  mkdirSync(dirname(target), { recursive: true })
  cpSync(path, target, { recursive: true, filter: isInBuildContext })
}

/** With `cp`, which keeps modes and symbolic links. */
async function copy(source: string, target: string): Promise<void> {
  mkdirSync(target, { recursive: true })
  await run('cp', ['--archive', `${source}/.`, target])
}

/** @throws {Error} with what the command has printed. */
async function runInside(image: Image, command: string, variables: Record<string, string>): Promise<void> {
  const cache = execFileSync('npm', ['config', 'get', 'cache'], { encoding: 'utf8' }).trim()
  mkdirSync(cache, { recursive: true })
  const inside = {
    ...image,
    environment: { ...machineVariables, ...image.environment, ...variables } as Record<string, string>,
  }
  const [program = '', ...args] = enter(inside, ['/bin/sh', '-c', command], { '/root/.npm': { path: cache } }, false)
  await run(program, args, { maxBuffer: 64 * 1024 * 1024 }).catch(({ stdout, stderr, message }) => {
    throw new Error(`RUN ${command}\n${stdout}\n${stderr || message}`)
  })
}

/** Starts a container, with a read-only root and an empty /tmp; by default the image's own command. */
export function startContainer(
  image: Image,
  options: { command?: string[]; environment?: Record<string, string>; volumes?: Volumes },
): ChildProcess {
  const inside = { ...image, environment: { ...image.environment, ...options.environment } }
  const command = [...image.entrypoint, ...(options.command ?? image.command)]
  const [program = '', ...args] = enter(inside, command, options.volumes ?? {}, true)
  return spawn(program, args, { stdio: ['ignore', 'pipe', 'pipe'] })
}

/** The command that executes another one in a new namespace, as the image's user and with the image's environment alone. */
function enter(image: Image, command: string[], volumes: Volumes, isReadOnly: boolean): string[] {
  const { root, environment, workingDirectory, user } = image
  const script = join(dirname(root), 'enter.sh')
  writeFileSync(script, mountScript(root, volumes, isReadOnly))
  const { PATH } = environment
  const [id, group = id] = user === 'root' ? ['0'] : user.split(':')
  const home = user === 'root' ? '/root' : '/home/node'
  const settings = Object.entries({ HOME: home, ...environment }).map(([name, value]) => `${name}=${value}`)
  const start = ['env', '--ignore-environment', `PATH=${PATH}`, ...settings, 'sh', '-c', 'cd "$0" && exec "$@"']
  return [...unshare, 'sh', script, `--userspec=${id}:${group}`, root, ...start, workingDirectory, ...command]
}

function mountScript(root: string, volumes: Volumes, isReadOnly: boolean): string {
  const lines = ['set -e', `mount --rbind ${root} ${root}`]
  const usrLocal = join(root, 'usr/local')
  const own = join(dirname(root), 'usr-local')
  // The tree's own /usr/local is mounted over that of the machine.
  lines.push(`mkdir -p ${own}`, `mount --rbind ${usrLocal} ${own}`)
  for (const directory of ['usr', 'etc', 'bin', 'sbin', 'lib', 'lib64']) {
    const path = `/${directory}`
    if (!existsSync(path)) continue
    const target = join(root, directory)
    if (realpathSync(path) !== path) lines.push(`[ -e ${target} ] || ln -s .${realpathSync(path)} ${target}`)
    else lines.push(`mkdir -p ${target}`, `mount --bind -o ro ${path} ${target}`)
  }
  lines.push(`mount --rbind ${own} ${usrLocal}`)
  for (const directory of ['proc', 'dev']) {
    lines.push(`mkdir -p ${join(root, directory)}`, `mount --rbind /${directory} ${join(root, directory)}`)
  }
  lines.push(`mount -t tmpfs -o mode=1777 tmpfs ${join(root, 'tmp')}`)
  for (const [target, { path, readOnly }] of Object.entries(volumes)) {
    const at = join(root, target)
    lines.push(`mkdir -p ${at}`, `mount --bind ${readOnly ? '-o ro ' : ''}${path} ${at}`)
  }
  if (isReadOnly) lines.push(`mount -o remount,bind,ro ${root}`)
  return [...lines, 'exec chroot "$@"', ''].join('\n')
}

/** Removes the file trees. */
export async function removeImages(built: Map<string, Image>): Promise<void> {
  for (const { root } of built.values()) await rm(dirname(root), { recursive: true, force: true })
}

/** Megabytes of a gzipped archive of the paths that the image adds to its base, as a registry stores its layers. */
export async function compressedMegabytes({ root }: Image): Promise<number> {
  const paths = ['app', 'opt', 'data'].filter((path) => existsSync(join(root, path)))
  const archive = `set -o pipefail; tar --create --directory=${root} ${paths.join(' ')} | gzip -6 | wc -c`
  const { stdout } = await run('bash', ['-c', archive])
  return Number(stdout) / 1e6
}
