/** Runs the commands of a walkthrough in a checkout, and the servers that they call. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'

export interface CommandResult {
  code: number | null
  output: string
}

export interface CommandLine {
  run(command: string): Promise<CommandResult>
  /** Restarts the servers before the next call. */
  filesHaveChanged(): void
  stop(): Promise<void>
}

/** The servers behind the addresses in walkthroughs. */
const servers: Record<string, { args: string[]; address: RegExp }> = {
  'http://127.0.0.1:3001': { args: ['src/main.ts', 'start'], address: /^Execution API +(\S+)$/m },
  'http://127.0.0.1:4001': { args: ['src/main.ts', 'mock'], address: /^Mock of the Execution API +(\S+)$/m },
}

const portNames = ['DASHBOARD', 'EXECUTION', 'BROWSER_CONTEXT', 'MANAGEMENT', 'MOCK_EXECUTION', 'MOCK_BROWSER_CONTEXT']

export async function commandLine(directory: string): Promise<CommandLine> {
  const { PATH, HOME } = process.env
  const ports = Object.fromEntries(portNames.map((name) => [`${name}_PORT`, '0']))
  const binaries = join(directory, 'node_modules/.bin')
  const environment = { PATH: `${binaries}:${PATH}`, HOME, NO_COLOR: '1', DATA_DIR: join(directory, 'data'), ...ports }
  const start = (command: string, args: string[], more = {}) =>
    spawn(command, args, {
      cwd: directory,
      env: { ...environment, NODE_COMPILE_CACHE: 'node_modules/.cache/node', ...more },
    })
  const running = new Map<string, { child: ChildProcess; address: string }>()

  const inShell = async (command: string): Promise<CommandResult> => {
    const child = start('sh', ['-c', command])
    let output = ''
    for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', (text) => (output += text))
    const [code] = await once(child, 'close')
    return { code, output }
  }

  // The first command prints a line about the new store before its JSON.
  const json = async (command: string) => {
    const { output } = await inShell(`node src/main.ts ${command} --json`)
    return JSON.parse(output.slice(output.indexOf('{')))
  }
  const { id } = await json('accounts create --name Walkthrough --scopes')
  const keys: Record<string, string> = {
    API_KEY: (await json(`keys create --name all --account ${id}`)).value,
    OTHER_KEY: (await json(`keys create --name other --account ${id} --scopes workflows:read`)).value,
  }

  const startServer = async (origin: string): Promise<string> => {
    const known = running.get(origin)
    if (known) return known.address
    const server = servers[origin]
    if (!server) throw new Error(`No server for ${origin}.`)
    const child = start(process.execPath, server.args)
    let printed = ''
    for (const stream of [child.stdout, child.stderr])
      stream.setEncoding('utf8').on('data', (text) => (printed += text))
    while (!server.address.test(printed)) {
      await Promise.race([once(child.stderr, 'data'), once(child, 'exit')])
      if (child.exitCode !== null) throw new Error(`${server.args.join(' ')} exited:\n${printed}`)
    }
    const address = server.address.exec(printed)?.[1] ?? ''
    running.set(origin, { child, address })
    return address
  }

  /** Implements the options of curl that the walkthrough uses, since curl may not be installed. */
  const curl = async (command: string): Promise<CommandResult> => {
    const [, flag, , header, value = '', origin = '', path = ''] =
      /^curl (-i )?(-H "(\S+): ([^"]+)" )?(http:\/\/[^/]+)(\/\S*)$/.exec(command) ?? []
    const headers = new Headers()
    if (header)
      headers.set(
        header,
        value.replace(/\$(\w+)/, (_, name) => keys[name] ?? ''),
      )
    const response = await fetch((await startServer(origin)) + path, { headers })
    const head = [...response.headers].map(
      ([name, text]) => `${name.replace(/\b[a-z]/g, (it) => it.toUpperCase())}: ${text}`,
    )
    const responseText = [`HTTP/1.1 ${response.status} ${response.statusText}`, ...head, '', ''].join('\n')
    return { code: 0, output: (flag ? responseText : '') + (await response.text()) }
  }

  const stop = async () => {
    const children = [...running.values()].map(({ child }) => child)
    running.clear()
    for (const child of children) child.kill('SIGTERM')
    await Promise.all(children.map((child) => child.exitCode ?? once(child, 'exit')))
  }
  let isOutdated = false
  return {
    async run(command) {
      if (!command.startsWith('curl ')) {
        // Incremental, because `tsc` runs several times.
        const faster = command === 'npx tsc -p .' ? ' --incremental --tsBuildInfoFile data/tsbuildinfo.json' : ''
        return inShell(command + faster)
      }
      if (isOutdated) await stop()
      isOutdated = false
      return curl(command)
    },
    filesHaveChanged: () => {
      isOutdated = true
    },
    stop,
  }
}
