/** The list of mutants fits the code, so that `npm run test:mutants` can plant each of them. */
import { existsSync, readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { mutants } from '../mutants/mutants.ts'

test('the text of each mutant stands exactly once in its file, and its tests exist', () => {
  const misplaced = mutants.filter(({ file, from, to }) => {
    const text = existsSync(file) ? readFileSync(file, 'utf8') : ''
    return text.split(from).length !== 2 || from === to
  })
  expect(misplaced.map(({ file, from }) => `${file}: ${from}`)).toEqual([])
  expect(mutants.flatMap(({ tests }) => tests).filter((path) => !existsSync(path))).toEqual([])
})
