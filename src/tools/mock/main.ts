/** `npm run mock` serves the mock until it is stopped. With `--bare`, runs `prism mock` itself for comparison. */

import { type ChildProcess, type StdioOptions, spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { simulateInstead } from '../../commands/mock.ts'
import { CommandError, exitOnError } from '../../commands/output.ts'
import type { SimulateOptions } from '../../commands/simulate.ts'
import { onStopSignal } from '../../commands/stop-signal.ts'
import { shellCommand } from '../../config/command-line.ts'
import { settings } from '../../config/config.ts'
import type { Workflows } from '../../domain/workflows/workflows.ts'
import { type DocumentName, documentNames } from '../../openapi/document.ts'
import { openLog } from '../../telemetry/log.ts'
import type { Mock } from './mock.ts'
import { defaultPorts, mockKeys, validKey } from './mock-keys.ts'
import { exampleWorkflows, loadWorkflows } from './mock-workflows.ts'

function readPort(name: string, fallback: string): number {
  return settings.EXECUTION_PORT.read(process.env[name] || fallback, name)
}

function banner({ executionUrl, browserContextUrl }: Mock, workflows: Workflows): string {
  return [
    `Mock of the Execution API        ${executionUrl}`,
    `Mock of the Browser Context API  ${browserContextUrl}`,
    '',
    `Workflows: ${workflows
      .list()
      .map(({ id }) => id)
      .join(', ')}`,
    '',
    'The mock validates requests as the service does, and remembers nothing.',
    `To keep state and set the clock, start the simulator: ${shellCommand('mock --simulate')}`,
    '',
    'API keys and the status of responses to them (401 for any other key):',
    ...mockKeys.map(({ value, status, meaning }) => `  ${value}  ${status}  ${meaning}`),
    '',
    `  curl ${executionUrl}/v1/execution/runs -H 'Authorization: Bearer ${validKey.value}'`,
    '',
    'To get any documented response, send `Prefer: code=404`, `Prefer: example=NAME` or `Prefer: dynamic=true`.',
    '',
  ].join('\n')
}

interface Options {
  bare: boolean
  /** Set for the simulator. */
  simulated?: SimulateOptions
  workflows: string
}

const boolean = { type: 'boolean' } as const
const text = { type: 'string' } as const
const parameters = {
  bare: boolean,
  workflows: text,
  simulate: boolean,
  scenarios: text,
  speed: text,
  now: text,
  seed: text,
}

function readOptions(): Options {
  try {
    const { values } = parseArgs({ options: parameters })
    const { bare = false, simulate = false, workflows = exampleWorkflows, ...ofSimulator } = values
    if (simulate && bare) throw new Error('--simulate and --bare exclude each other.')
    if (simulate) return { bare, workflows, simulated: { ...ofSimulator, workflows: values.workflows } }
    const [useless] = Object.keys(ofSimulator)
    if (useless) throw new Error(`--${useless} needs --simulate.`)
    if (bare && values.workflows !== undefined) throw new Error('--bare runs Prism alone: it takes no --workflows.')
    return { bare, workflows }
  } catch (error) {
    throw new CommandError(
      `${(error as Error).message}\nUsage: ${shellCommand('mock')} [--workflows DIR], or --simulate [--workflows DIR] [--scenarios FILE] [--speed NUMBER] [--now TIME] [--seed TEXT]; in a checkout also npm run mock -- --bare`,
    )
  }
}

async function mock(): Promise<void> {
  const options = readOptions()
  if (options.simulated) return simulateInstead(options.simulated)
  const host = process.env.HOST || settings.HOST.default
  const executionPort = readPort('MOCK_EXECUTION_PORT', defaultPorts.execution)
  const browserContextPort = readPort('MOCK_BROWSER_CONTEXT_PORT', defaultPorts.browserContext)
  if (options.bare) {
    const ports = { 'execution.v1': executionPort, 'browser-context.alpha': browserContextPort }
    const processes = documentNames.map((name) =>
      spawnPrism('mock', name, ['--host', host, '--port', String(ports[name])], 'inherit'),
    )
    onStopSignal(async () => void (await Promise.all(processes.map(stopProcess))))
    return
  }
  const level = process.env.LOG_LEVEL || settings.LOG_LEVEL.default
  const log = openLog({ LOG_LEVEL: settings.LOG_LEVEL.read(level, 'LOG_LEVEL') })
  // A simulator needs nothing of it.
  const { startMock } = await import('./mock.ts')
  const workflows = await loadWorkflows(options.workflows)
  const starting = startMock({ host, executionPort, browserContextPort, log, workflows })
  onStopSignal(async () => {
    await (await starting).stop()
    log.flush()
  })
  process.stderr.write(`${banner(await starting, workflows)}\n`)
}

// Runs the `prism` command, without the stages of the service in front.

const prismCommand = fileURLToPath(new URL('../../../node_modules/.bin/prism', import.meta.url))

/** Starts `prism mock` or `prism proxy` with the Node version of this process, which Prism requires. */
export function spawnPrism(
  command: 'mock' | 'proxy',
  name: DocumentName,
  args: string[],
  stdio: StdioOptions,
): ChildProcess {
  // Prism does not handle rejections, and would exit at the first malformed request.
  const nodeArgs = ['--unhandled-rejections=none', prismCommand]
  return spawn(process.execPath, [...nodeArgs, command, `generated/${name}/document.json`, ...args], { stdio })
}

export async function stopProcess(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  child.kill()
  await once(child, 'exit')
}

if (import.meta.main) await exitOnError(mock)
