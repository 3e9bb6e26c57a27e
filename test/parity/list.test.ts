/** The guide lists the differences between the mock and the service. */
import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { permitted } from './differences.ts'

test('the guide lists exactly the permitted differences', () => {
  const guide = readFileSync('docs/guides/mock.md', 'utf8')
  const listed = guide.split('<!-- differences -->')[1]?.split('<!-- /differences -->')[0]?.trim()
  expect(listed).toBe(permitted.map(({ what, why }) => `- **${what}.** ${why}`).join('\n'))
})
