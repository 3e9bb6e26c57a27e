/** The page "Go to": links to pages, actions, workflows and runs that match a text. */
import { within } from '@testing-library/dom'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { find } from '../support/html.ts'
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
    const page = await user.visitor.get(`/go-to?search=${encodeURIComponent(search)}`)
    const items = within(find(page).getByRole('main')).queryAllByRole('listitem')
    return items.map((item) => within(item).getByRole('link').getAttribute('href'))
  }
  expect(await links(ada, '')).toEqual(expect.arrayContaining([`/runs/${id}`, '/', '/api-keys', '/workflows/greet']))
  expect(await links(ada, 'greet SOMEBODY')).toEqual(['/workflows/greet'])
  expect(await links(ada, 'create key')).toEqual(['/api-keys/new'])
  expect(await links(ada, id.toUpperCase())).toEqual([`/runs/${id}`])
  expect(await links(ada, id.slice(-8))).toEqual([`/runs/${id}`])
  expect(await links(eve, id)).toEqual([])
  expect(await links(eve, '')).not.toContain(`/runs/${id}`)
  expect(await links(ada, '<b>nothing</b>')).toEqual([])
})
