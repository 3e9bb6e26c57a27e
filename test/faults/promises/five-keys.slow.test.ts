/** P9: a user never has more than 5 keys, and an account never more than 5 active keys. */
import { once } from 'node:events'
import { describe, expect, test } from 'vitest'
import { readConfig } from '../../../src/config/config.ts'
import { openStore } from '../../../src/domain/installation.ts'
import { newUser } from '../../support/domain.ts'
import { newFleet } from '../../support/fleet.ts'
import { fleetStores } from '../../support/fleet-stores.ts'
import { startProcess } from '../../support/processes.ts'
import { openAdministration } from '../../support/service.ts'
import { record } from '../figures.ts'
import type { CreationResult, KeysToCreate } from './create-keys.ts'

const processes = 3
const keysOfEach = 10
const rounds = 20

describe.each(fleetStores)('on the store "$name"', (kind) => {
  test('parallel creations in several processes create exactly five keys', async (test) => {
    const fleet = await newFleet(test, kind)
    const administration = await openAdministration(readConfig(fleet.settings))
    test.onTestFinished(() => administration.close())
    const store = await openStore(readConfig(fleet.settings))
    test.onTestFinished(() => store.close())
    const module = new URL('./create-keys.ts', import.meta.url)
    const args = [JSON.stringify(fleet.settings)]
    const creators = await Promise.all(Array.from({ length: processes }, () => startProcess(test, module, args)))
    const keyCounts: number[] = []
    let refused = 0
    for (let round = 0; round < rounds; round += 1) {
      const { id: accountId } = await administration.createAccount()
      const users = store.read.query.selectFrom('users').select('id').where('account_id', '=', accountId)
      const userIds = [(await users.executeTakeFirstOrThrow()).id]
      // One user in half of the rounds; three users share the account's limit in the others.
      if (round % 2 === 1) userIds.push(await newUser({ store }, accountId), await newUser({ store }, accountId))
      const keysToCreate: KeysToCreate = { accountId, userIds, count: keysOfEach }
      const responses = creators.map(async (creator) => {
        const response = once(creator, 'message')
        creator.send(keysToCreate)
        return (await response)[0] as CreationResult
      })
      for (const each of await Promise.all(responses)) refused += each.refused
      const inAccount = store.read.query.selectFrom('api_keys').select('id').where('account_id', '=', accountId)
      keyCounts.push((await inAccount.where('deleted_at', 'is', null).execute()).length)
    }
    const fault = `${processes * keysOfEach} parallel creations × ${rounds} rounds, ${processes} processes`
    const excess = keyCounts.reduce((sum, count) => sum + Math.max(0, count - 5), 0)
    record({
      promise: 'P9',
      store: kind.name,
      fault,
      figures: { refused, duplicated: excess },
      remark: 'duplicated: keys beyond 5',
    })
    expect(keyCounts).toEqual(Array(rounds).fill(5))
    // The key that createAccount creates is one of the five.
    expect(refused).toBe(rounds * (processes * keysOfEach - 4))
  })
})
