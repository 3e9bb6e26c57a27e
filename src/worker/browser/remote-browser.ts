/**
 * A proxy process that Playwright launches as a browser, and that forwards every message to a remote browser. If each
 * run connected over the DevTools protocol itself, Playwright would treat the contexts of all runs as its default
 * context: every run would see the pages of all others and dismiss their dialogs.
 */
import { Socket } from 'node:net'
import { describeConnectionFailure } from '../../storage/error-causes.ts'
import { reasonMark } from './host-messages.ts'

/** @param reason reported to the run: it must not contain the address, which may have a provider's token. */
function fail(reason: string): never {
  process.stderr.write(`${reasonMark}${reason}\n`)
  process.exit(1)
}

/** @param address of the browser, or of its page `/json/version`, which names it. */
async function webSocketUrl(address: string): Promise<string> {
  const url = new URL(address)
  // Node rejects credentials in HTTP URLs and drops them from WebSocket URLs.
  if (url.username || url.password) fail('it has a user name or a password, which are not sent')
  if (/^wss?:/.test(address)) return address
  url.pathname = `${url.pathname.replace(/\/$/, '')}/json/version`
  const response = await fetch(url, { signal: AbortSignal.timeout(20_000) })
  if (!response.ok) fail(`status ${response.status}`)
  const { webSocketDebuggerUrl } = (await response.json()) as { webSocketDebuggerUrl?: string }
  return webSocketDebuggerUrl ?? fail('/json/version names no webSocketDebuggerUrl')
}

/** Must not be forwarded: the browser is not ours to close. */
function isClose(message: string): boolean {
  return message.includes('"Browser.close"') && JSON.parse(message).method === 'Browser.close'
}

/** Playwright ends each message with a NUL; it writes to descriptor 3 and reads from 4. */
async function serve(address: string): Promise<void> {
  const remote = new WebSocket(await webSocketUrl(address))
  const fromPlaywright = new Socket({ fd: 3 })
  const toPlaywright = new Socket({ fd: 4 })
  // The remote browser disposes of a connection's contexts when it closes.
  fromPlaywright.on('close', () => process.exit())
  fromPlaywright.on('error', () => process.exit())
  toPlaywright.on('error', () => process.exit())
  remote.addEventListener('error', () => fail('the connection failed'))
  remote.addEventListener('close', () => fail('the connection ended'))
  remote.addEventListener('message', ({ data }) => toPlaywright.write(`${data}\0`))
  remote.addEventListener('open', () => {
    let chunks: Buffer[] = []
    fromPlaywright.on('data', (chunk) => {
      let rest = chunk
      for (let end = rest.indexOf(0); end >= 0; end = rest.indexOf(0)) {
        const message = Buffer.concat([...chunks, rest.subarray(0, end)]).toString()
        chunks = []
        rest = rest.subarray(end + 1)
        if (isClose(message)) process.exit()
        remote.send(message)
      }
      if (rest.length > 0) chunks.push(rest)
    })
  })
}

const { BROWSER_CDP_URL } = process.env
if (BROWSER_CDP_URL) {
  await serve(BROWSER_CDP_URL).catch((error) =>
    fail(describeConnectionFailure('it', error)?.replace(/ \((\w+)\)\.$/, ', $1') ?? 'the request failed'),
  )
}
