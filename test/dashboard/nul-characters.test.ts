/** U+0000, which PostgreSQL accepts neither in text nor in parameters. Always runs on PostgreSQL. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type DashboardService, startDashboardService, Visitor } from '../support/dashboard.ts'
import { postgres } from '../support/postgres.ts'
import { createItems, routePath, routes } from './route-list.ts'

let dashboard: DashboardService
let account: Awaited<ReturnType<typeof createItems>>
let databaseUrl: string
const directory = mkdtempSync(join(tmpdir(), 'execution-service-nul-'))

beforeAll(async () => {
  databaseUrl = await postgres.prepare()
  dashboard = await startDashboardService({ DATA_DIR: directory, DATABASE_URL: databaseUrl })
  account = await createItems(dashboard)
})

afterAll(async () => {
  await dashboard.stop()
  await postgres.remove(databaseUrl)
  rmSync(directory, { recursive: true })
})

const nul = '%00'

test('U+0000 in a path returns 404', async () => {
  const { visitor } = account.owner
  const pages = routes.filter(({ method, isStream }) => method === 'GET' && !isStream)
  for (const { path } of pages) {
    expect
      .soft([path, (await visitor.get(`${path.replaceAll(/:\w+/g, nul)}?actor=${nul}`)).status])
      .toEqual([path, 404])
  }
  expect(dashboard.log.filter(({ level }) => Number(level) >= 50)).toEqual([])
})

test('U+0000 in a form field causes no internal error', async () => {
  const names = ['email', 'password', 'name', 'label', 'role', 'id', 'newPassword', 'currentPassword']
  const body = names.map((name) => `${name}=a${nul}b`).join('&')
  const headers = { 'Content-Type': 'application/x-www-form-urlencoded', 'Sec-Fetch-Site': 'same-origin' }
  for (const route of routes.filter(({ method, path }) => method === 'POST' && path !== '/sign-out')) {
    const visitor = route.role === 'everyone' ? new Visitor(dashboard.url) : account.owner.visitor
    const { status } = await visitor.send('POST', routePath(route, account.items), { headers, body })
    expect.soft([route.path, status < 500]).toEqual([route.path, true])
  }
  expect(dashboard.log.filter(({ level }) => Number(level) >= 50)).toEqual([])
})
