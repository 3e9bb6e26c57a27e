/** How the client reads lists whose pages are not as the contract has them: on a server that makes them so. */
import { expect, test } from 'vitest'
import { createExecutionClient, problemTypes } from '../../src/client/index.ts'
import { allOf } from './all-of.ts'
import { answer, scripted } from './scripted-server.ts'

test('a list ends with a page that does not say where the next one starts', async (test) => {
  const server = await scripted(test, answer(200, { data: [{ id: 'a run' }] }))
  const client = createExecutionClient({ baseUrl: server.url, apiKey: 'a-key' })
  const ids: string[] = []
  for await (const { id } of client.runs.list()) {
    if (ids.push(id) === 5) break
  }
  expect(ids).toEqual(['a run'])
})

test('a list whose pages lead back to one another ends with an error', async (test) => {
  const pages = ['b', 'c', 'b', 'c'].map((nextCursor) => answer(200, { data: [{ id: 'a run' }], nextCursor }))
  const server = await scripted(test, ...pages, answer(200, { data: [], nextCursor: null }))
  const client = createExecutionClient({ baseUrl: server.url, apiKey: 'a-key' })
  const problem = { type: problemTypes.unexpectedAnswer, status: 200 }
  await expect(allOf(client.runs.list())).rejects.toMatchObject(problem)
  expect(server.requests.map(({ path }) => new URL(path, server.url).search)).toEqual(['', '?cursor=b', '?cursor=c'])
})
