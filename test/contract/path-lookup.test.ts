import { describe, expect, test } from 'vitest'
import { createPathLookup } from '../../src/contract/path-lookup.ts'
import type { Operation } from '../../src/openapi/served-operations.ts'

const operation = (path: string, method = 'GET') => ({ id: `${method} ${path}`, method, path }) as Operation

/** The operation and values found for the path. */
function lookUp(paths: string[], path: string) {
  const match = createPathLookup(paths.map((it) => operation(it)))(path)
  return match && { id: match.operations.get('GET')?.id, values: match.values }
}

describe('a path is found', () => {
  test('by its segments, with parameters still percent-encoded', () => {
    expect(lookUp(['/a/{x}/b/{y}'], '/a/1/b/%2F%zz')).toEqual({ id: 'GET /a/{x}/b/{y}', values: ['1', '%2F%zz'] })
  })

  test('by static segments before parameters', () => {
    expect(lookUp(['/a/{x}', '/a/best'], '/a/best')).toEqual({ id: 'GET /a/best', values: [] })
  })

  test('by a parameter if a static segment leads nowhere', () => {
    const paths = ['/a/best/pages', '/a/{x}/notes', '/{y}/best/{z}']
    expect(lookUp(paths, '/a/best/notes')).toEqual({ id: 'GET /a/{x}/notes', values: ['best'] })
    expect(lookUp(paths, '/a/best/other')).toEqual({ id: 'GET /{y}/best/{z}', values: ['a', 'other'] })
  })

  test('at the root', () => {
    expect(lookUp(['/'], '/')).toEqual({ id: 'GET /', values: [] })
  })

  test('with the methods that it has', () => {
    const match = createPathLookup([operation('/a'), operation('/a', 'PUT')])('/a')
    expect([...(match?.operations.keys() ?? [])]).toEqual(['GET', 'HEAD', 'PUT'])
  })
})

test.each([
  '/a/',
  '/A',
  '//a',
  '/a//',
  '',
  'a',
  '*',
  '/a/1/',
  '/a/',
  '/%61',
  '/b',
  '/a/1/2',
  '/constructor',
  '/__proto__',
])('%j matches neither /a nor /a/{x}', (path) => {
  expect(lookUp(['/a', '/a/{x}'], path)).toBeUndefined()
})

test('the cost of a lookup does not depend on the number of operations', () => {
  const steps = (count: number) => {
    const paths = Array.from({ length: count }, (_, index) => `/a${index}/{x}/b${index}`)
    const find = createPathLookup(paths.map((it) => operation(it)))
    let gets = 0
    const { get } = Map.prototype
    Map.prototype.get = function (key) {
      gets++
      return get.call(this, key)
    }
    try {
      find('/a3/1/b3')
    } finally {
      Map.prototype.get = get
    }
    return gets
  }
  expect(steps(5_000)).toBe(steps(5))
})

test('two operations with the same method and path are refused', () => {
  expect(() => createPathLookup([operation('/a/{x}'), operation('/a/{y}')])).toThrow('have the same method and path')
})

test('a segment that mixes text and parameter is refused', () => {
  expect(() => createPathLookup([operation('/a/{x}.json')])).toThrow('{x}.json')
})
