/** The reading paths in docs/architecture.md follow the calls of the code. */
import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { documentPath, withReadingPaths } from '../../src/tools/reading-paths.ts'

test('the reading paths are those that `npm run generate:paths` writes', () => {
  const document = readFileSync(documentPath, 'utf8')
  expect(withReadingPaths(document)).toBe(document)
})
