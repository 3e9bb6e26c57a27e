import { ImapFlow } from 'imapflow'
import { refusal, use } from '../lib/use.mjs'

export default use('imapflow', 'is refused by a closed port', 'ECONNREFUSED', () =>
  refusal(async () => {
    const client = new ImapFlow({ host: '127.0.0.1', port: 1, auth: { user: 'u', pass: 'p' }, logger: false })
    client.on('error', () => {})
    await client.connect()
  }),
)
