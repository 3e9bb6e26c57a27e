/** Processes that start for the first time on one empty store at the same moment all start. */
import { describe, expect, test } from 'vitest'
import { Accounts } from '../../src/domain/accounts/accounts.ts'
import { newFleet } from '../support/fleet.ts'
import { fleetStores } from '../support/fleet-stores.ts'

const processes = 8
const rounds = 3

describe.each(fleetStores)('on the store "$name"', (kind) => {
  test.for(Array.from({ length: rounds }, (_, index) => index + 1))(
    'eight services that start at once on an empty store all start, with one first account (round %i)',
    async (_, test) => {
      // The server's default, which other tests raise.
      const fleet = await newFleet(test, kind, { server: { max_connections: '100' } })
      const starts = Array.from({ length: processes }, () => fleet.api({ worker: true }))
      for (const started of await Promise.all(starts)) expect(started.logged('worker exited; restarting')).toBe(0)
      expect(await fleet.withStore((store) => new Accounts(store).list())).toHaveLength(1)
    },
  )
})
