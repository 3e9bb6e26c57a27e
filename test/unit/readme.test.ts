/** The README's table of environment variables is what src/config.ts says. */
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import packageJson from '../../package.json' with { type: 'json' }
import { settings } from '../../src/config.ts'

test('the README lists every environment variable with its default, and no other', () => {
  const rows = Object.entries(settings).map(([name, { default: fallback, description: meaning }]) => {
    return `| \`${name}\` | ${fallback === undefined ? '' : `\`${fallback}\``} | ${meaning} |`
  })
  const table = ['| variable | default | meaning |', '| --- | --- | --- |', ...rows].join('\n')
  const readme = readFileSync('README.md', 'utf8')
  const shown = readme.split('<!-- settings -->')[1]?.split('<!-- /settings -->')[0]?.trim()
  expect(shown).toBe(table)
})

test('the guide to operating names settings and commands that exist', () => {
  const text = readFileSync('docs/operating.md', 'utf8')
  const named = new Set([...text.matchAll(/`([A-Z]+(?:_[A-Z]+)+)(?:=[^`]*)?`/g)].map(([, name = '']) => name))
  expect(named).toContain('DRAIN_SECONDS')
  expect([...named].filter((name) => !(name in settings))).toEqual([])
  const scripts = [...text.matchAll(/npm (?:run )?(\w[\w:]*)/g)].map(([, name = '']) => name)
  expect(scripts.filter((name) => !(name in packageJson.scripts))).toEqual([])
  const links = [...text.matchAll(/\]\(([^)#]+)(?:#[^)]*)?\)/g)].map(([, path = '']) => path)
  expect(links.filter((path) => !existsSync(join('docs', path)))).toEqual([])
})
