/** docs/reliability.md lists all promises with existing tests and their results. */
import { existsSync, readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { promises } from '../faults/promises.ts'

const page = readFileSync('docs/reliability.md', 'utf8')

test('the page lists every promise with existing tests', () => {
  const numbers = promises.map(({ id }) => Number(id.slice(1)))
  expect(numbers).toEqual([...new Set(numbers)].sort((a, b) => a - b))
  expect(numbers.slice(0, 16)).toEqual(Array.from({ length: 16 }, (_, index) => index + 1))
  for (const { id, sentence, faults, others } of promises) {
    const line = page.split('\n').find((each) => each.startsWith(`- **${id}. `)) ?? ''
    expect(line).toContain(sentence)
    const named = [...line.matchAll(/\(\.\.\/([^)]+)\)/g)].map(([, path = '']) => path)
    expect(named).toEqual([...faults, ...others])
    expect(named.filter((path) => !existsSync(path))).toEqual([])
    expect(others.length).toBeGreaterThan(0)
  }
})

test('the page has results for both stores, with nothing lost or duplicated', () => {
  const rows = page.split('\n').filter((line) => /^\| P\d/.test(line))
  const cells = rows.map((row) => row.split('|').map((cell) => cell.trim()))
  expect(new Set(cells.map(([, , store]) => store))).toEqual(new Set(['embedded', 'PostgreSQL']))
  const violations = cells.filter(
    ([, , , , , , lost = '', duplicated = '']) => Number(lost) > 0 || Number(duplicated) > 0,
  )
  expect(violations).toEqual([])
})
