/** `npm run mock`: serves the mock until it is told to stop. */
import { exitOnError } from '../../commands/output.ts'
import { onStopSignal } from '../../commands/stop-signal.ts'
import { settings } from '../../config.ts'
import { openLog } from '../../telemetry/log.ts'
import { goodKey, mockKeys } from './keys.ts'
import { type Mock, startMock } from './mock.ts'
import { mockPorts } from './ports.ts'

function port(name: string, fallback: string): number {
  return settings.EXECUTION_PORT.read(process.env[name] || fallback, name)
}

function banner({ executionUrl, browserContextUrl }: Mock): string {
  return [
    `Mock of the Execution API        ${executionUrl}`,
    `Mock of the Browser Context API  ${browserContextUrl}`,
    '',
    "It keeps no state: what is sent is checked and forgotten, and answers are the documents' examples.",
    'For what is remembered, start the service: npm start',
    '',
    'API keys, and what each is answered with (every other one: 401):',
    ...mockKeys.map(({ value, status, meaning }) => `  ${value}  ${status}  ${meaning}`),
    '',
    `  curl ${executionUrl}/v1/execution/runs -H 'Authorization: Bearer ${goodKey.value}'`,
    '',
    'Ask for any documented answer with `Prefer: code=404`, `Prefer: example=NAME`, `Prefer: dynamic=true`.',
    '',
  ].join('\n')
}

await exitOnError(async () => {
  const log = openLog({
    LOG_LEVEL: settings.LOG_LEVEL.read(process.env.LOG_LEVEL || settings.LOG_LEVEL.default, 'LOG_LEVEL'),
  })
  const starting = startMock({
    host: process.env.HOST || settings.HOST.default,
    executionPort: port('MOCK_EXECUTION_PORT', mockPorts.execution),
    browserContextPort: port('MOCK_BROWSER_CONTEXT_PORT', mockPorts.browserContext),
    log,
  })
  onStopSignal(async () => {
    await (await starting).stop()
    log.flush()
  })
  process.stderr.write(`${banner(await starting)}\n`)
})
