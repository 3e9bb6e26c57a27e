/** The process that runs a workflow of a snapshot once. Arguments: the step, the directory and the module. */
import { mkdirSync } from 'node:fs'
import { Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { pathToFileURL } from 'node:url'
import { type Message, messageStream } from '../../domain/deployments/build-process.ts'
import { runWorkflow } from './run-workflow.ts'

const [, directory = '', module = ''] = process.argv.slice(2)

mkdirSync(tmpdir(), { recursive: true, mode: 0o700 })

async function findFailure(): Promise<string | null> {
  const variables = JSON.parse(await text(process.stdin))
  const workflow = (await import(pathToFileURL(join(directory, module)).href)).default
  const { status, error, reason } = await runWorkflow(workflow, { variables, retry: true, browser: 'chromium' })
  if (status === 'succeeded') return null
  return error ? `${error.name}: ${error.message}` : `${status} (${reason})`
}

const pipe = new Socket({ fd: messageStream, readable: false, writable: true })
pipe.on('error', () => process.exit())
const failure = await findFailure().catch((error: unknown) => String(error))
pipe.write(`${JSON.stringify({ kind: 'tried', failure } satisfies Message)}\n`)
