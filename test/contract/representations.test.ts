import { expect, test } from 'vitest'
import { Representations } from '../../src/contract/representations.ts'
import { TenantLimits } from '../../src/contract/tenant-limits.ts'

const kept = new Representations<object>({ ownerBytesMax: 100, bytesMax: 250 })
const names = (owner: object, all: string) => [...all].filter((name) => kept.find(owner, name)).join('')

test('representations stay within the bytes of an owner and of all, and the least recently used are dropped', () => {
  const [first, second, third] = [{}, {}, {}]
  for (const name of ['a', 'b']) kept.add(first, name, 'x'.repeat(50))
  kept.find(first, 'a')
  kept.add(first, 'c', 'x'.repeat(50))
  expect([names(first, 'abc'), kept.bytes]).toEqual(['ac', 100])
  // The same name replaces what was kept.
  kept.add(first, 'c', 'x'.repeat(40))
  expect(kept.bytes).toBe(90)
  kept.add(second, 'a', 'x'.repeat(100))
  expect(names(first, 'abc')).toBe('ac')
  // More than the limit of an owner, since it is the last one.
  kept.add(third, 'a', 'x'.repeat(120))
  expect([names(first, 'abc'), names(second, 'a'), names(third, 'a'), kept.bytes]).toEqual(['ac', '', 'a', 210])
})

test('compressed bytes count, and are made once', async () => {
  const all = new Representations<object>({ ownerBytesMax: 2000, bytesMax: 2000 })
  const added = all.add({}, 'a', 'x'.repeat(1000))
  const [compressed, again] = await Promise.all([added.compress(), added.compress()])
  expect(again).toBe(compressed)
  expect(all.bytes).toBe(1000 + compressed.length)
})

test('what several requests ask for is made once, one after the other, and not again', async () => {
  const all = new Representations<object>()
  const limits = new TenantLimits()
  const begin = (name: string) => limits.begin(name, { once: () => {} } as never)
  const owner = {}
  const made: string[] = []
  let now = 0
  const get = (tenant: string, name: string) =>
    all.get(owner, name, begin(tenant), async () => {
      now += 1
      await new Promise(setImmediate)
      expect(now).toBe(1)
      now -= 1
      made.push(name)
      return name
    })
  const got = await Promise.all([get('a', 'x'), get('b', 'x'), get('a', 'y'), get('b', 'z')])
  expect(made.sort()).toEqual(['x', 'y', 'z'])
  expect(got[1]).toBe(got[0])
  expect(await get('b', 'y')).toBe(got[2])
})
