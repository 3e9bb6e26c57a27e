/** The page about security names requirements of the standard, files and tests that exist. */
import { existsSync, readFileSync } from 'node:fs'
import { expect, test } from 'vitest'

const rows = readFileSync('docs/security.md', 'utf8')
  .split('\n')
  .filter((line) => /^\| \d/.test(line))
  .map((line) => line.split('|').map((cell) => cell.trim()))

test.each(rows.map((cells) => [cells[1], cells] as const))(
  '%s has files and tests that exist',
  (requirement, cells) => {
    expect(cells).toHaveLength(6)
    expect(requirement).toMatch(/^\d{1,2}\.\d{1,2}\.\d{1,2}(, \d{1,2}\.\d{1,2}\.\d{1,2})* /)
    const sources = [...(cells[3] ?? '').matchAll(/`([^`]+)`/g)].map(([, path = '']) => path)
    expect(sources.filter((path) => !existsSync(path))).toEqual([])
    expect(sources).not.toEqual([])
    // Titles in quotes belong to the file before them.
    const tests = (cells[4] ?? '').split(/(?=`test\/)/)
    for (const each of tests) {
      const path = /^`([^`]+\.test\.ts)`/.exec(each)?.[1] ?? ''
      const titles = [...each.matchAll(/"([^"]+)"/g)].map(([, title = '']) => title)
      expect(titles, path).not.toEqual([])
      const source = readFileSync(path, 'utf8')
      expect(
        titles.filter((title) => !source.includes(title)),
        path,
      ).toEqual([])
    }
  },
)

test('no requirement is listed twice, and none is both met and not met', () => {
  const met = rows.flatMap((cells) => (cells[1] ?? '').match(/\d+\.\d+\.\d+/g) ?? [])
  const unmet = [...readFileSync('docs/security.md', 'utf8').matchAll(/^- (\d+\.\d+\.\d+):/gm)].map(([, id]) => id)
  const all = [...met, ...unmet]
  expect(all.filter((id, index) => all.indexOf(id) !== index)).toEqual([])
  expect(rows.length).toBeGreaterThan(40)
})
