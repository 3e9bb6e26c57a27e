/** A start waits for a store that is busy, and reports other errors at once. */
import { expect, test, vi } from 'vitest'
import { retryAtStart } from '../../src/domain/installation.ts'
import { StoreUnavailable } from '../../src/storage/store.ts'

test('a start repeats what fails because the store is unavailable', async () => {
  const act = vi.fn(async () => 'done').mockRejectedValueOnce(new StoreUnavailable('busy'))
  expect(await retryAtStart(act)).toBe('done')
  expect(act).toHaveBeenCalledTimes(2)
})

test('a start does not repeat what fails for another reason', async () => {
  const act = vi.fn().mockRejectedValue(new Error('wrong password'))
  await expect(retryAtStart(act)).rejects.toThrow('wrong password')
  expect(act).toHaveBeenCalledTimes(1)
})
