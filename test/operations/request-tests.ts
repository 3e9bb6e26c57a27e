/** Invalid values that several operations refuse. */
import { expect, test } from 'vitest'
import type { Subject } from './describe-operation.ts'
import { expectInvalid } from './guards.ts'
import type { SentRequest } from './requests.ts'

/** Invalid names, and the error. */
const wrongNames: [what: string, name: unknown, detail: string][] = [
  ['an empty name', '', 'must NOT have fewer than 1 characters'],
  ['a name of 101 characters', 'a'.repeat(101), 'must NOT have more than 100 characters'],
  ['a space at the start', ' a', 'must match pattern'],
  ['a space at the end', 'a ', 'must match pattern'],
  ['a line break', 'a\nb', 'must match pattern'],
  ['a number', 7, 'must be string'],
  ['null', null, 'must be string'],
]

/** 400: an invalid name of a browser context. */
export function testInvalidNames(subject: Subject): void {
  test.each(wrongNames)('refuses %s', async (_, name, detail) => {
    const errors = [{ pointer: '/name', detail: expect.stringContaining(detail) }]
    const wrong = expect.arrayContaining(errors) as unknown as unknown[]
    await expectInvalid(subject, (request) => ({ ...request, body: JSON.stringify({ name }) }), wrong)
  })
}

/** 400: a header that is no list of entity tags. */
export function testInvalidEntityTags(subject: Subject, header: string): void {
  test.each(['no-quotes', '"one" "two"', '"one",', 'w/"one"', '*, "one"', '"ü"'])(
    `refuses ${header}: %s`,
    async (tags) => {
      const value = Buffer.from(tags).toString('latin1')
      const withHeader = (request: SentRequest) => ({ ...request, headers: { ...request.headers, [header]: value } })
      await expectInvalid(subject, withHeader, [{ header, detail: expect.stringContaining('must match pattern') }])
    },
  )
}
