/** A process that serves both documents by Prism alone, as its command line does, and tells when it leaves a request without an answer. */
import { createRequire } from 'node:module'
import { getHttpOperationsFromSpec, type IHttpConfig } from '@stoplight/prism-http'

/** What Prism's command line starts. */
interface PrismServer {
  listen(port: number, host: string): Promise<string>
}
const { createServer } = createRequire(import.meta.resolve('@stoplight/prism-cli'))('@stoplight/prism-http-server') as {
  createServer(operations: unknown[], options: { components: object; config: IHttpConfig; cors: boolean }): PrismServer
}

const silent = () => {}
const logger = {
  ...{ trace: silent, debug: silent, info: silent, success: silent, warn: silent, error: silent },
  child: () => logger,
} as object

const checks = { checkSecurity: true, validateRequest: true, validateResponse: true, errors: false }
const config = { ...checks, isProxy: false, upstreamProxy: undefined, mock: { dynamic: false } } as const

async function serve(name: string): Promise<string> {
  const operations = await getHttpOperationsFromSpec(`generated/${name}/document.json`)
  return createServer(operations, { components: { logger }, config, cors: true }).listen(0, '127.0.0.1')
}

// Prism handles no error of its own; whoever has asked waits for ever.
process.on('unhandledRejection', () => process.send?.('unanswered'))
process.once('disconnect', () => process.exit())

const [executionUrl, browserContextUrl] = await Promise.all(['execution.v1', 'browser-context.alpha'].map(serve))
process.send?.({ executionUrl, browserContextUrl })
