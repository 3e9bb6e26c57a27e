/**
 * One version of the service. It loads and warms what it will need of other packages, waits until it is asked to serve,
 * and only then loads the code, the documents and the workflows as they are at that moment.
 */
import { registerHooks } from 'node:module'
import { setImmediate } from 'node:timers/promises'
import { sentenceOf } from './sentence.ts'

/** What the process tells. A version that cannot serve ends; one that has closed its ports finishes what it has begun. */
export type VersionNews = { serving: true } | { refused: string } | { closed: true }

const source = new URL('../..', import.meta.url).href
let isAsked = false

const asked = new Promise<{ greet: boolean }>((resolve) => {
  process.once('message', (message: { greet: boolean }) => {
    isAsked = true
    resolve(message)
  })
})

/**
 * Does what a start does before it listens. Loading the packages takes 0.3 s of a start; compiling the documents' schemas
 * takes 0.5 s, and half of that when it has been done twice in the process. The code for it is that of the version before,
 * loaded under other addresses, so that what the service then imports of src/ is loaded anew. Breaks off when the version
 * is asked to serve.
 */
async function warmUp(): Promise<void> {
  const hooks = registerHooks({
    resolve(specifier, context, next) {
      const found = next(specifier, context)
      const isOfBefore = context.parentURL?.endsWith('?before') && found.url.startsWith(source)
      return isOfBefore ? { ...found, url: `${found.url}?before` } : found
    },
  })
  const ofBefore = async <Module>(module: string): Promise<Module> => import(`${source}${module}?before`)
  try {
    await ofBefore('commands/start.ts')
    const documents = await ofBefore<typeof import('../../openapi/served-documents.ts')>('openapi/served-documents.ts')
    const { readOperations } =
      await ofBefore<typeof import('../../openapi/served-operations.ts')>('openapi/served-operations.ts')
    const { mountDocument } = await ofBefore<typeof import('../../contract/mount.ts')>('contract/mount.ts')
    const both = [documents.executionContract, documents.browserContextContract]
    for (const contract of [...both, ...both]) {
      await setImmediate()
      if (isAsked) return
      const handlers = Object.fromEntries(readOperations(contract.document).map(({ id }) => [id, () => {}]))
      await mountDocument({ ...contract, handlers } as unknown as Parameters<typeof mountDocument>[0])
    }
  } catch {
    // Whatever is wrong with the code is told when it is asked to serve.
  } finally {
    hooks.deregister()
  }
}

async function serve(): Promise<void> {
  const { greet } = await asked
  try {
    const { start } = await import('../../commands/start.ts')
    void greet
    await start({ only: [] })
    // The service has closed its ports by the time that its own handler of the signal gives way.
    process.on('SIGTERM', () => void setImmediate().then(() => tell({ closed: true })))
    tell({ serving: true })
  } catch (error) {
    tell({ refused: sentenceOf(error) }, () => process.exit(1))
  }
}

function tell(news: VersionNews, then = () => {}): void {
  if (process.connected) process.send?.(news, then)
}

await warmUp()
await serve()
