/** `mock --simulate`: serves the simulator until it is stopped. */
import { fileURLToPath } from 'node:url'
import { shellCommand } from '../config/command-line.ts'
import { settings } from '../config/config.ts'
import { type Simulator, startSimulator } from '../simulator/simulator.ts'
import { CommandError } from './output.ts'
import { onStopSignal } from './stop-signal.ts'

/** Those of the mock, and two more. */
const simulatorPorts = {
  DASHBOARD_PORT: { variable: 'MOCK_DASHBOARD_PORT', port: '4000' },
  EXECUTION_PORT: { variable: 'MOCK_EXECUTION_PORT', port: '4001' },
  BROWSER_CONTEXT_PORT: { variable: 'MOCK_BROWSER_CONTEXT_PORT', port: '4002' },
  MANAGEMENT_PORT: { variable: 'MOCK_MANAGEMENT_PORT', port: '4003' },
} as const

const exampleWorkflows = fileURLToPath(new URL('../../examples/workflows', import.meta.url))

export interface SimulateOptions {
  workflows?: string | undefined
  /** The time at which the world begins. */
  now?: string | undefined
  speed?: string | undefined
  /** A file of scenarios. */
  scenarios?: string | undefined
  seed?: string | undefined
}

/** @throws {CommandError} for an option that cannot be used. */
export async function simulate(options: SimulateOptions): Promise<void> {
  const { workflows = exampleWorkflows, seed, scenarios } = options
  const starting = startSimulator({
    workflows,
    speed: readSpeed(options.speed ?? '1'),
    settings: { ...readPorts(), ...readOthers() },
    ...(options.now !== undefined && { now: readTime(options.now) }),
    ...(seed !== undefined && { seed }),
    ...(scenarios !== undefined && { scenarios }),
  })
  onStopSignal(async () => (await starting).stop())
  const simulator = await starting.catch((error: Error) => {
    throw expectedErrors.has(error.name) || expectedErrors.has(error.constructor.name)
      ? new CommandError(withMockPorts(error.message))
      : error
  })
  process.stderr.write(`${banner(simulator)}\n`)
}

/** Ports have other variables than those of the service. */
function withMockPorts(message: string): string {
  const names = Object.entries(simulatorPorts)
  return names.reduce((text, [setting, { variable }]) => text.replace(`set ${setting} `, `set ${variable} `), message)
}

/** Errors of the world's thread, whose classes are another thread's. */
const expectedErrors = new Set(['ListenError', 'ConfigError', 'ScenariosInvalid'])

function readSpeed(text: string): number {
  const speed = Number(text)
  if (text.trim() !== '' && speed >= 0 && speed <= 1_000_000) return speed
  throw new CommandError(`--speed is "${text}": set it to a number from 0 to 1000000.`)
}

function readTime(text: string): Date {
  const time = new Date(text)
  if (!Number.isNaN(time.getTime())) return time
  throw new CommandError(`--now is "${text}": set it to a time such as 2026-01-31T12:00:00Z.`)
}

function readPorts(): Record<string, string> {
  return Object.fromEntries(
    Object.entries(simulatorPorts).map(([setting, { variable, port }]) => {
      const text = process.env[variable] || port
      return [setting, String(settings.EXECUTION_PORT.read(text, variable))]
    }),
  )
}

/** As for the service. */
function readOthers(): Record<string, string> {
  const names = ['HOST', 'LOG_LEVEL', 'ALLOWED_HOSTS', 'CORS_ORIGINS'] as const
  return Object.fromEntries(names.flatMap((name) => (process.env[name] ? [[name, process.env[name]]] : [])))
}

function banner(simulator: Simulator): string {
  const { executionUrl, browserContextUrl, dashboardUrl, managementUrl, welcomeUrl, apiKey } = simulator
  return [
    `Execution API        ${executionUrl}`,
    `Browser Context API  ${browserContextUrl}`,
    `Dashboard            ${dashboardUrl}`,
    `Docs                 ${executionUrl}/docs/`,
    `Simulator            ${managementUrl}/simulator/clock`,
    '',
    'The service in memory: it forgets everything when it stops, and runs no code of workflows.',
    `To keep state and run workflows, start the service: ${shellCommand('start')}`,
    '',
    `  curl ${executionUrl}/v1/execution/runs -H 'Authorization: Bearer ${apiKey}'`,
    `  curl ${managementUrl}/simulator/clock -d '{"advanceSeconds": 3600}'`,
    ...(welcomeUrl ? ['', 'Open this link to sign in to the dashboard. It works once:', `  ${welcomeUrl}`] : []),
    '',
  ].join('\n')
}
