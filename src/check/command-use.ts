/** Starts the command: once for each use, or once for all if it serves requests. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { CheckError, type Service, type UseEnd } from './check-consumer.ts'
import type { ConsumerFile } from './consumer-file.ts'

/** How long a command may take to end itself. */
const endMilliseconds = 2000
const outputLengthMax = 1_000_000

/** @throws {CheckError} if there is no such program. */
export async function useCommand(
  command: readonly string[],
  { executionUrl, apiKey, signal }: Service,
  { done }: ConsumerFile,
): Promise<UseEnd> {
  const child = await startCommand(command, { EXECUTION_URL: executionUrl, API_KEY: apiKey }, [
    'ignore',
    'pipe',
    'ignore',
  ])
  let output = ''
  child.stdout?.on('data', (chunk) => {
    if (output.length < outputLengthMax) output += chunk
  })
  // A listener of the signal gets its listeners' promises to nobody.
  const stop = () => void stopCommand(child)
  signal.addEventListener('abort', stop)
  if (signal.aborted) stop()
  const [code, signalName] = await once(child, 'close')
  signal.removeEventListener('abort', stop)
  const isMatched = done?.output === undefined || new RegExp(done.output).test(output)
  const ended = code === null ? `ended by the signal ${signalName}` : `ended with code ${code}`
  return {
    done: code === 0 && isMatched,
    isObserved: done !== undefined,
    ended: code === 0 && !isMatched ? 'ended without the output of `done`' : ended,
  }
}

export async function startCommand(
  [program = '', ...args]: readonly string[],
  environment: Record<string, string>,
  stdio: ('ignore' | 'pipe' | 'inherit' | number)[],
): Promise<ChildProcess> {
  // A group of its own, so that what a script has started ends with it.
  const child = spawn(program, args, { env: { ...process.env, ...environment }, stdio, detached: true })
  try {
    await once(child, 'spawn')
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException
    throw new CheckError(`The command "${program}" cannot be started (${code}): correct what follows \`--\`.`, {
      cause,
    })
  }
  return child
}

export async function stopCommand(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const ended = once(child, 'exit')
  send(child, 'SIGTERM')
  const timer = setTimeout(() => send(child, 'SIGKILL'), endMilliseconds)
  await ended
  clearTimeout(timer)
}

function send({ pid }: ChildProcess, signal: NodeJS.Signals): void {
  try {
    process.kill(-(pid as number), signal)
  } catch (error) {
    // The group has ended.
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
  }
}
