/** U+0000, which PostgreSQL neither keeps as text nor looks for: on that store, whichever the other tests are on. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type DashboardService, startDashboardService, Visitor } from '../support/dashboard.ts'
import { postgres } from '../support/postgres.ts'
import { newThings, pathTo, routes } from './routes.ts'

let served: DashboardService
let ours: Awaited<ReturnType<typeof newThings>>
let place: string
const directory = mkdtempSync(join(tmpdir(), 'execution-service-nul-'))

beforeAll(async () => {
  place = await postgres.prepare()
  served = await startDashboardService({ DATA_DIR: directory, DATABASE_URL: place })
  ours = await newThings(served)
})

afterAll(async () => {
  await served.stop()
  await postgres.remove(place)
  rmSync(directory, { recursive: true })
})

const nul = '%00'

test('in an address leads to no page, and fails nothing', async () => {
  const { visitor } = ours.owner
  const pages = routes.filter(({ method, isStream }) => method === 'GET' && !isStream)
  for (const { path } of pages) {
    expect
      .soft([path, (await visitor.get(`${path.replaceAll(/:\w+/g, nul)}?actor=${nul}`)).status])
      .toEqual([path, 404])
  }
  expect(served.log.filter(({ level }) => Number(level) >= 50)).toEqual([])
})

test('in a field of a form fails nothing', async () => {
  const names = ['email', 'password', 'name', 'label', 'role', 'id', 'newPassword', 'currentPassword']
  const body = names.map((name) => `${name}=a${nul}b`).join('&')
  const headers = { 'Content-Type': 'application/x-www-form-urlencoded', 'Sec-Fetch-Site': 'same-origin' }
  for (const route of routes.filter(({ method, path }) => method === 'POST' && path !== '/sign-out')) {
    const visitor = route.who === 'everyone' ? new Visitor(served.url) : ours.owner.visitor
    const { status } = await visitor.send('POST', pathTo(route, ours.things), { headers, body })
    expect.soft([route.path, status < 500]).toEqual([route.path, true])
  }
  expect(served.log.filter(({ level }) => Number(level) >= 50)).toEqual([])
})
