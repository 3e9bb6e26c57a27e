/**
 * A process that Playwright takes for a browser which it has launched, and which hands everything to one that runs
 * elsewhere. If each run connected to that one by itself, Playwright would show the pages of all runs to every run, and
 * answer their dialogs: over the DevTools protocol it takes contexts that are not its own for the default one.
 */
import { Socket } from 'node:net'
import { reasonMark } from './messages.ts'

/** @param reason told to whoever needs a browser, and so without the address, which may have the token of a provider. */
function fail(reason: string): never {
  process.stderr.write(`${reasonMark}${reason}\n`)
  process.exit(1)
}

/** @param address of the browser, or of its page `/json/version`, which names it. */
async function webSocketUrl(address: string): Promise<string> {
  const url = new URL(address)
  // Node refuses them over HTTP, and leaves them out over WebSocket.
  if (url.username || url.password) fail('it has a user name or a password, which are not sent')
  if (/^wss?:/.test(address)) return address
  url.pathname = `${url.pathname.replace(/\/$/, '')}/json/version`
  const response = await fetch(url, { signal: AbortSignal.timeout(20_000) })
  if (!response.ok) fail(`status ${response.status}`)
  const { webSocketDebuggerUrl } = (await response.json()) as { webSocketDebuggerUrl?: string }
  return webSocketDebuggerUrl ?? fail('/json/version names no webSocketDebuggerUrl')
}

/** Closing the browser is for whoever started it. */
function isClosing(message: string): boolean {
  return message.includes('"Browser.close"') && JSON.parse(message).method === 'Browser.close'
}

/** Messages of errors may quote the address. */
function codeOf(error: { name?: unknown; cause?: { code?: unknown } }): string {
  const code = error.cause?.code
  if (typeof code === 'string') return code
  return error.name === 'TimeoutError' ? 'it did not answer in time' : 'it could not be asked'
}

/** Messages on Playwright's side end with a NUL: it writes to descriptor 3 and reads from 4. */
async function serve(address: string): Promise<void> {
  const remote = new WebSocket(await webSocketUrl(address))
  const fromPlaywright = new Socket({ fd: 3 })
  const toPlaywright = new Socket({ fd: 4 })
  // Its browser ends when it has: contexts of a connection are disposed of with it.
  fromPlaywright.on('close', () => process.exit())
  fromPlaywright.on('error', () => process.exit())
  toPlaywright.on('error', () => process.exit())
  remote.addEventListener('error', () => fail('the connection failed'))
  remote.addEventListener('close', () => fail('the connection ended'))
  remote.addEventListener('message', ({ data }) => toPlaywright.write(`${data}\0`))
  remote.addEventListener('open', () => {
    let parts: Buffer[] = []
    fromPlaywright.on('data', (chunk) => {
      let rest = chunk
      for (let end = rest.indexOf(0); end >= 0; end = rest.indexOf(0)) {
        const message = Buffer.concat([...parts, rest.subarray(0, end)]).toString()
        parts = []
        rest = rest.subarray(end + 1)
        if (isClosing(message)) process.exit()
        remote.send(message)
      }
      if (rest.length > 0) parts.push(rest)
    })
  })
}

const { BROWSER_CDP_URL } = process.env
if (BROWSER_CDP_URL) {
  await serve(BROWSER_CDP_URL).catch((error) => fail(codeOf(error)))
}
