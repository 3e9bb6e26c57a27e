import { Redis } from 'ioredis'
import { refusal, use } from '../lib/use.mjs'

export default use('ioredis', 'is refused by a closed port', 'ECONNREFUSED', () =>
  refusal(async () => {
    const client = new Redis('redis://127.0.0.1:1', { lazyConnect: true, retryStrategy: null })
    let cause
    client.on('error', (error) => (cause = error))
    await client.connect().catch((error) => {
      throw cause ?? error
    })
  }),
)
