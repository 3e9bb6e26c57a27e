/** `check-consumer`: checks a program that calls the service or gets its webhooks, and exits with 1 if it finds something. */
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { createServer } from 'node:net'
import { fileURLToPath } from 'node:url'
import { CheckError, Checker, type ConsumerCheck } from '../check/check-consumer.ts'
import { startCommand, stopCommand, useCommand } from '../check/command-use.ts'
import { type ConsumerFile, readConsumerFile, readDone } from '../check/consumer-file.ts'
import { type ReporterName, reporters } from '../check/report.ts'
import { CommandError, print } from './output.ts'

const exampleWorkflows = fileURLToPath(new URL('../../examples/workflows', import.meta.url))

/** The first world has it, and no program knows it from elsewhere. */
const apiKey = '00000000-0000-4000-8000-000000000200'

export interface CheckOptions {
  webhook?: string
  workflows?: string
  scenario?: string
  reporter?: string
  only?: string
  seed?: string
}

/** @throws {CommandError} if the program cannot be checked. */
export async function checkCommand(command: readonly string[], options: CheckOptions): Promise<void> {
  const { workflows = exampleWorkflows, reporter = 'text', seed = 'seed' } = options
  if (!Object.hasOwn(reporters, reporter))
    throw new CommandError(`--reporter is "${reporter}": set it to ${Object.keys(reporters).join(', ')}.`)
  try {
    const file = options.scenario === undefined ? {} : await readConsumerFile(options.scenario)
    checkTogether(command, options, file)
    const checker = await Checker.start(workflows, seed)
    try {
      const report = await checkProgram(checker, command, file, { ...options, seed })
      print(reporters[reporter as ReporterName](report))
      if (report.findings.length > 0) process.exitCode = 1
    } finally {
      await checker.stop()
    }
  } catch (error) {
    const isExpected =
      error instanceof CheckError || /^(?:ScenariosInvalid|ConfigError|WorkflowError)$/.test((error as Error).name)
    throw isExpected ? new CommandError((error as Error).message) : error
  }
}

function checkTogether(command: readonly string[], { webhook }: CheckOptions, { use, done }: ConsumerFile): void {
  if (command.length === 0)
    throw new CommandError('There is no command: write it after `--`, such as `-- node order.js`.')
  if (webhook !== undefined && !/^https?:$/.test(protocolOf(webhook)))
    throw new CommandError(`--webhook is "${webhook}": set it to a URL such as http://127.0.0.1:8080/hooks.`)
  if (use && protocolOf(use.url) === '') throw new CommandError(`use.url is "${use.url}": write a URL.`)
  if (done?.output && (use || webhook !== undefined))
    throw new CommandError('done.output is for commands that end after one use: write done.url and done.matches.')
}

function protocolOf(url: string): string {
  return URL.canParse(url) ? new URL(url).protocol : ''
}

async function checkProgram(
  checker: Checker,
  command: readonly string[],
  file: ConsumerFile,
  { webhook, only, seed }: CheckOptions,
) {
  const { limitSeconds, use, done } = file
  const shared = {
    ...(seed !== undefined && { seed }),
    ...(only !== undefined && { only: only.split(',') }),
    ...(limitSeconds !== undefined && { limitSeconds }),
  }
  if (webhook === undefined && !use)
    return checker.check({ ...shared, use: (service) => useCommand(command, service, file) })
  const port = await freePort()
  const secret = process.env.WEBHOOK_SECRET || `whsec_${randomBytes(24).toString('base64')}`
  const environment = { EXECUTION_URL: `http://127.0.0.1:${port}`, API_KEY: apiKey, WEBHOOK_SECRET: secret }
  const child = await startCommand(command, environment, ['ignore', 2, 2])
  const ended = new Promise<never>((_resolve, reject) => {
    child.once('exit', (code, signal) =>
      reject(new CheckError(`The command ended with ${code ?? signal} while it was checked: let it keep running.`)),
    )
  })
  const consumer: Omit<ConsumerCheck, 'workflows'> = {
    ...{ ...shared, port, apiKey },
    ...(use && { use: () => sendUse(use, done) }),
    ...(webhook && { webhook: { url: webhook, secret, ...(done?.url && { done: (runId) => readDone(done, runId) }) } }),
  }
  try {
    return await Promise.race([checker.check(consumer), ended])
  } finally {
    child.removeAllListeners('exit')
    ended.catch(() => {})
    await stopCommand(child)
  }
}

/** A running program is used by a request, whose response says whether the work was done. */
async function sendUse({ url, method = 'POST', body }: NonNullable<ConsumerFile['use']>, done: ConsumerFile['done']) {
  const response = await fetch(url, {
    method,
    ...(body !== undefined && { body: JSON.stringify(body), headers: { 'Content-Type': 'application/json' } }),
  })
  await response.body?.cancel()
  return { done: response.ok, isObserved: done !== undefined, ended: `answered with ${response.status}` }
}

async function freePort(): Promise<number> {
  const server = createServer()
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  await once(server, 'close')
  return port
}
