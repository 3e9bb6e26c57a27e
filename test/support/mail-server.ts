/** An SMTP server on 127.0.0.1 that keeps the emails that it accepts. */
import type { AddressInfo, Socket } from 'node:net'
import { text } from 'node:stream/consumers'
import { SMTPServer } from 'smtp-server'
import type { Test } from './domain.ts'

export interface ReceivedMail {
  from: string
  to: string[]
  /** As sent, with its headers. */
  raw: string
  /** Headers by lower-case name, unfolded. */
  headers: Record<string, string>
  /** The readable text, decoded. */
  text: string
}

export interface MailServer {
  url: string
  mails: ReceivedMail[]
  /** Addresses that are refused, and whether all emails are refused for now. */
  refusing: { addresses: string[]; all: boolean }
  /** What the server does not answer: the recipients, or the end of the email, after which it closes the connection. */
  silent: { at?: 'recipients' | 'end' | undefined }
}

/** The server is closed with the test. */
export async function startMailServer(test: Test): Promise<MailServer> {
  const mails: ReceivedMail[] = []
  const refusing: MailServer['refusing'] = { addresses: [], all: false }
  const silent: MailServer['silent'] = {}
  const sockets = new Set<Socket>()
  const refusal = (responseCode: number, message: string) => Object.assign(new Error(message), { responseCode })
  const server = new SMTPServer({
    authOptional: true,
    disabledCommands: ['STARTTLS'],
    closeTimeout: 100,
    onRcptTo: ({ address }, _, callback) => {
      if (silent.at !== 'recipients')
        callback(refusing.addresses.includes(address) ? refusal(550, 'No such user') : null)
    },
    onData: (stream, session, callback) => {
      void text(stream).then((raw) => {
        if (refusing.all) return callback(refusal(451, 'Try again later'))
        const { mailFrom, rcptTo } = session.envelope
        const to = rcptTo.map(({ address }) => address)
        mails.push({ from: mailFrom ? mailFrom.address : '', to, raw, ...parse(raw) })
        if (silent.at !== 'end') callback(null)
        else for (const socket of sockets) socket.destroy()
      })
    },
  })
  server.server.on('connection', (socket: Socket) => sockets.add(socket))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  test.onTestFinished(() => new Promise<void>((resolve) => server.close(() => resolve())))
  return { url: `smtp://127.0.0.1:${(server.server.address() as AddressInfo).port}`, mails, refusing, silent }
}

function parse(raw: string): Pick<ReceivedMail, 'headers' | 'text'> {
  const end = raw.indexOf('\r\n\r\n')
  const lines = raw
    .slice(0, end)
    .replaceAll(/\r\n[ \t]+/g, ' ')
    .split('\r\n')
  const headers = Object.fromEntries(
    lines.map((line) => [line.slice(0, line.indexOf(':')).toLowerCase(), line.slice(line.indexOf(':') + 1).trim()]),
  )
  const decoded = raw
    .slice(end)
    .replaceAll('=\r\n', '')
    .replaceAll(/((?:=[0-9A-F]{2})+)/g, (bytes) => Buffer.from(bytes.replaceAll('=', ''), 'hex').toString())
  return { headers, text: decoded }
}
