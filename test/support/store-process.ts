/** A process with a store: `node store-process.ts KIND COMMAND LOCATION…`. It waits for a message from its parent. */
import { Accounts } from '../../src/domain/accounts/accounts.ts'
import { addKeyInTransaction, keyFilePath } from '../../src/storage/key-file.ts'
import type { Store } from '../../src/storage/store.ts'
import { stores } from './store-kinds.ts'

const [name, command, ...locations] = process.argv.slice(2)
const kind = stores.find((each) => each.name === name)
if (!kind) throw new Error(`There is no store "${name}".`)

const commands: Record<string, (store: Store) => Promise<void>> = {
  /** Initializes the store like a start of the service. */
  async start(store) {
    await new Accounts(store).createFirst()
    await store.close()
  },
  /** Writes an account, and kills itself once the write resolves. */
  async writeAndDie(store) {
    await new Accounts(store).create({ name: 'Written last', scopesEnabled: false })
    process.kill(process.pid, 'SIGKILL')
  },
  /** Reads all runs in a loop, and sends a message after the first time. */
  async readOn(store) {
    for (let count = 0; ; count += 1) {
      await store.read.query.selectFrom('runs').selectAll().execute()
      if (count === 0) process.send?.('reading')
      await new Promise((resolve) => setImmediate(resolve))
    }
  },
  /** Adds ten keys to the key file. */
  async addKeys(store) {
    for (let count = 0; count < 10; count += 1) await addKeyInTransaction(store, keyFilePath(locations[0] ?? ''))
    await store.close()
    process.disconnect()
  },
  /** Replies to each notification with another. */
  async replyToNotification(store) {
    store.listen('queue', () => store.notify('runs'))
    process.send?.('listening')
  },
}

process.once('message', async () => {
  for (const location of locations) await commands[command ?? '']?.(await kind.open(location))
  if (command === 'start') process.disconnect()
})
process.once('disconnect', () => process.exit())
process.send?.('ready')
