/** The README's table of environment variables is what src/config.ts says. */
import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { settings } from '../../src/config.ts'

test('the README lists every environment variable with its default, and no other', () => {
  const rows = Object.entries(settings).map(([name, { fallback, meaning }]) => {
    return `| \`${name}\` | ${fallback === undefined ? '' : `\`${fallback}\``} | ${meaning} |`
  })
  const table = ['| variable | default | meaning |', '| --- | --- | --- |', ...rows].join('\n')
  const readme = readFileSync('README.md', 'utf8')
  const shown = readme.split('<!-- settings -->')[1]?.split('<!-- /settings -->')[0]?.trim()
  expect(shown).toBe(table)
})
