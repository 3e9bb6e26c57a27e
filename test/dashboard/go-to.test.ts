/** The page "Go to": links to pages, actions, workflows and runs that match a text. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startTestService, type TestService } from '../support/service.ts'
import { newUser, queue } from './run-helpers.ts'

let service: TestService

beforeAll(async () => {
  service = await startTestService()
})

afterAll(() => service.stop())

test('finds pages, actions, workflows of the account, and its runs by id', async () => {
  const [ada, eve] = [await newUser(service), await newUser(service)]
  const id = await queue(ada, 'greet', { name: 'Ada' }, '?delaySeconds=60')
  const links = async (user: typeof ada, search: string) => {
    const { text } = await user.visitor.get(`/go-to?search=${encodeURIComponent(search)}`)
    const found = text.slice(text.indexOf('id="destinations"')).matchAll(/<li><a href="([^"]*)"/g)
    return [...found].map(([, path]) => path)
  }
  expect(await links(ada, '')).toEqual(expect.arrayContaining([`/runs/${id}`, '/', '/api-keys', '/workflows/greet']))
  expect(await links(ada, 'greet SOMEBODY')).toEqual(['/workflows/greet'])
  expect(await links(ada, 'create key')).toEqual(['/api-keys/new'])
  expect(await links(ada, id.toUpperCase())).toEqual([`/runs/${id}`])
  expect(await links(eve, id)).toEqual([])
  expect(await links(eve, '')).not.toContain(`/runs/${id}`)
  expect(await links(ada, '<b>nothing</b>')).toEqual([])
})
