/** The command line of a person who follows a guide: runs its commands, and has the servers at hand that it calls. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'

export interface Answered {
  code: number | null
  output: string
}

export interface CommandLine {
  run(command: string): Promise<Answered>
  /** The next call is answered by a server with the code as it is then. */
  filesHaveChanged(): void
  stop(): Promise<void>
}

/** What listens on the ports that guides name. */
const servers: Record<string, { args: string[]; address: RegExp }> = {
  'http://127.0.0.1:3001': { args: ['src/main.ts', 'start'], address: /^Execution API +(\S+)$/m },
  'http://127.0.0.1:4001': { args: ['src/tools/mock/main.ts'], address: /^Mock of the Execution API +(\S+)$/m },
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

  const inShell = async (command: string): Promise<Answered> => {
    const child = start('sh', ['-c', command])
    let output = ''
    for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', (text) => (output += text))
    const [code] = await once(child, 'close')
    return { code, output }
  }

  // The first of them says, before its JSON, that it has made a store.
  const json = async (command: string) => {
    const { output } = await inShell(`node src/main.ts ${command} --json`)
    return JSON.parse(output.slice(output.indexOf('{')))
  }
  const { id } = await json('accounts create --name Walk --scopes')
  const keys: Record<string, string> = {
    API_KEY: (await json(`keys create --name all --account ${id}`)).value,
    OTHER_KEY: (await json(`keys create --name other --account ${id} --scopes workflows:read`)).value,
  }

  const addressOf = async (origin: string): Promise<string> => {
    const known = running.get(origin)
    if (known) return known.address
    const server = servers[origin]
    if (!server) throw new Error(`Nothing listens on ${origin}.`)
    const child = start(process.execPath, server.args)
    let said = ''
    for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', (text) => (said += text))
    while (!server.address.test(said)) {
      await Promise.race([once(child.stderr, 'data'), once(child, 'exit')])
      if (child.exitCode !== null) throw new Error(`${server.args.join(' ')} ended:\n${said}`)
    }
    const address = server.address.exec(said)?.[1] ?? ''
    running.set(origin, { child, address })
    return address
  }

  /** As much of curl as the guide uses; there may be none. */
  const curl = async (command: string): Promise<Answered> => {
    const [, flag, , header, value = '', origin = '', path = ''] =
      /^curl (-i )?(-H "(\S+): ([^"]+)" )?(http:\/\/[^/]+)(\/\S*)$/.exec(command) ?? []
    const headers = new Headers()
    if (header)
      headers.set(
        header,
        value.replace(/\$(\w+)/, (_, name) => keys[name] ?? ''),
      )
    const response = await fetch((await addressOf(origin)) + path, { headers })
    const head = [...response.headers].map(
      ([name, text]) => `${name.replace(/\b[a-z]/g, (it) => it.toUpperCase())}: ${text}`,
    )
    const shown = [`HTTP/1.1 ${response.status} ${response.statusText}`, ...head, '', ''].join('\n')
    return { code: 0, output: (flag ? shown : '') + (await response.text()) }
  }

  const stop = async () => {
    const children = [...running.values()].map(({ child }) => child)
    running.clear()
    for (const child of children) child.kill('SIGTERM')
    await Promise.all(children.map((child) => child.exitCode ?? once(child, 'exit')))
  }
  let isBehind = false
  return {
    async run(command) {
      if (!command.startsWith('curl ')) {
        // The second time, the compiler then looks only at what has changed.
        const faster = command === 'npx tsc -p .' ? ' --incremental --tsBuildInfoFile data/tsbuildinfo.json' : ''
        return inShell(command + faster)
      }
      if (isBehind) await stop()
      isBehind = false
      return curl(command)
    },
    filesHaveChanged: () => {
      isBehind = true
    },
    stop,
  }
}
