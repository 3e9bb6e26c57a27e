/** Operations that are warmed at start serve their first request without compiling. */
import { Ajv2020 } from 'ajv/dist/2020.js'
import { expect, test, vi } from 'vitest'
import { warmUp } from '../../src/contract/mount.ts'
import { library } from './library.ts'
import { handlers, jsonType, key, serve } from './served.ts'

/** Validators are shared by equal documents, so each test has its own. */
function libraryNamed(title: string) {
  const document = library() as { info: object }
  return { ...document, info: { ...document.info, title } }
}

const putBook = (served: Awaited<ReturnType<typeof serve>>) =>
  served.call('PUT', '/books/a', { headers: [key, jsonType], body: '{"title":"A"}' })

test('the first request of a warmed operation compiles no schema, and starting calls no handler', async () => {
  const compiled = vi.spyOn(Ajv2020.prototype, 'compile')
  const called: string[] = []
  const recording = Object.fromEntries(
    Object.entries(handlers()).map(([id, run]) => {
      const record = (request: object) => {
        called.push(id)
        return run(request)
      }
      return [id, record]
    }),
  )
  const document = libraryNamed('Warm')
  const served = await serve({ document, handlers: recording, warm: ['putBook'] as never[] })
  await warmUp(served.app)
  expect(called).toEqual([])
  compiled.mockClear()
  expect((await putBook(served)).status).toBe(201)
  expect(compiled).not.toHaveBeenCalled()
  expect(called).toEqual(['putBook'])
  expect(served.logged).toHaveLength(1)
})

test('the first request of another operation compiles its schemas', async () => {
  const served = await serve({ document: libraryNamed('Cold') })
  const compiled = vi.spyOn(Ajv2020.prototype, 'compile')
  expect((await putBook(served)).status).toBe(201)
  expect(compiled).toHaveBeenCalled()
  // That of OpenAPI documents takes longer than all others.
  const ids = compiled.mock.calls.map(([schema]) => (schema as { $id?: string }).$id ?? '')
  expect(ids.filter((id) => id.includes('spec.openapis.org'))).toEqual([])
})
