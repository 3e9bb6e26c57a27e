/** The guide shows in what the mock differs from the service. */
import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { permitted } from './differences.ts'

test('the guide names every permitted difference, and no other', () => {
  const guide = readFileSync('docs/guides/mock.md', 'utf8')
  const shown = guide.split('<!-- differences -->')[1]?.split('<!-- /differences -->')[0]?.trim()
  expect(shown).toBe(permitted.map(({ what, why }) => `- **${what}.** ${why}`).join('\n'))
})
