import { once } from 'node:events'
import ssh2 from 'ssh2'
import { use } from '../lib/use.mjs'

export default use('ssh2', 'signs in at a local server', 'ready', async () => {
  const key = ssh2.utils.generateKeyPairSync('ed25519').private
  const server = new ssh2.Server({ hostKeys: [key] }, (connection) => {
    connection.on('error', () => {}).on('authentication', (attempt) => attempt.accept())
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const client = new ssh2.Client()
  client.connect({ host: '127.0.0.1', port: server.address().port, username: 'ada', password: 'secret' })
  try {
    await once(client, 'ready')
    return 'ready'
  } finally {
    client.destroy()
    server.close()
  }
})
