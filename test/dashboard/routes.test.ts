/** Who may do what: nobody without signing in, members nothing of an owner's, and nobody anything in another account. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type DashboardService, pageText, startDashboardService, Visitor } from '../support/dashboard.ts'
import { nameOf, newThings, pathTo, type Route, routes, servedRoutes, type Things } from './routes.ts'

let served: DashboardService
let ours: Awaited<ReturnType<typeof newThings>>
let theirs: Awaited<ReturnType<typeof newThings>>

beforeAll(async () => {
  served = await startDashboardService()
  ours = await newThings(served)
  theirs = await newThings(served)
})

afterAll(() => served.stop())

/** The routes by name, as `test.for` takes them. */
function named(which: (route: Route) => boolean): [string, Route][] {
  return routes.filter(which).map((route) => [nameOf(route), route])
}

function visit(visitor: Visitor, { method }: Route, path: string) {
  return method === 'GET' ? visitor.get(path) : visitor.post(path)
}

/** Every row of every table but those of sessions, which are written when somebody signs in. */
async function contents({ domain }: DashboardService): Promise<string> {
  const { query } = domain.store.read
  const tables = [
    'accounts',
    'users',
    'api_keys',
    'sign_in_links',
    'browser_contexts',
    'browser_context_versions',
    'runs',
    'run_events',
    'audit_log',
  ] as const
  const rows = await Promise.all(tables.map((table) => query.selectFrom(table).selectAll().execute()))
  // A key is noted as used some seconds after its use.
  return JSON.stringify(rows, (name, value) => (name.startsWith('last_used') ? null : value))
}

test('every route of the dashboard is in the list of these tests', () => {
  expect(routes.map(nameOf).sort()).toEqual(servedRoutes().sort())
  for (const { path, of } of routes) expect([path, of !== undefined]).toEqual([path, path.includes(':id')])
})

describe('whoever is not signed in', () => {
  test.for(named(({ who }) => who !== 'everyone'))('is sent from %s to sign in', async ([, route], { expect }) => {
    const before = await contents(served)
    const path = pathTo(route, ours.things)
    const forged = new Visitor(served.url)
    for (const name of ours.owner.visitor.cookies.keys()) forged.cookies.set(name, 's%3Aforged.signature')
    for (const visitor of [new Visitor(served.url), forged]) {
      const { status, headers, text } = await visit(visitor, route, path)
      const next = route.method === 'GET' && path !== '/' ? `?next=${encodeURIComponent(path)}` : ''
      expect([status, headers.location]).toEqual([303, `/sign-in${next}`])
      expect(text).toBe('')
    }
    expect(await contents(served)).toBe(before)
  })

  test('is sent from every form before it is read', async () => {
    for (const route of routes.filter(({ method, who }) => method === 'POST' && who !== 'everyone')) {
      const body = 'x'.repeat(5 * 1024 * 1024)
      const headers = { 'Sec-Fetch-Site': 'same-origin', 'Content-Type': 'application/json' }
      const answer = await new Visitor(served.url).send('POST', pathTo(route, ours.things), { headers, body })
      expect([nameOf(route), answer.status]).toEqual([nameOf(route), 303])
    }
  })
})

describe('a member', () => {
  test.for(named(({ who }) => who === 'owners'))('is refused %s', async ([, route], { expect }) => {
    const before = await contents(served)
    for (const things of [ours.things, { ...ours.things, user: ours.member.id }, theirs.things]) {
      const answer = await visit(ours.member.visitor, route, pathTo(route, things))
      expect(answer.status).toBe(403)
      expect(pageText(answer)).toContain('Only owners can view this page or make this change.')
    }
    expect(await contents(served)).toBe(before)
  })

  test('neither names, rotates nor deletes the key of another user', async () => {
    const before = await contents(served)
    for (const route of routes.filter(({ of }) => of === 'apiKey')) {
      const answer = await visit(ours.member.visitor, route, pathTo(route, ours.things))
      expect([nameOf(route), answer.status]).toEqual([nameOf(route), 403])
      expect(pageText(answer)).toContain('Only the user who created an API key')
    }
    expect(await contents(served)).toBe(before)
  })
})

describe('an owner', () => {
  test.for(named(({ of }) => of !== undefined && of !== 'workflow'))(
    'of another account finds nothing at %s',
    async ([, route], { expect }) => {
      const before = await contents(served)
      const answer = await visit(theirs.owner.visitor, route, pathTo(route, ours.things))
      expect(answer.status).toBe(404)
      expect(pageText(answer)).not.toContain('Ada of')
      expect(answer.text).not.toContain(ours.things[route.of ?? 'token'])
      expect(await contents(served)).toBe(before)
    },
  )

  test.for(named(({ of }) => of !== undefined))(
    'finds nothing at %s by an id of nothing',
    async ([, route], { expect }) => {
      const before = await contents(served)
      const { things } = ours
      const wrong = [
        crypto.randomUUID(),
        'none',
        '%00',
        '%F0%9F%94%91',
        'a'.repeat(3000),
        "'%20OR%20''='",
        '..%2f..',
        '__proto__',
      ]
      // Ids of the account's other things are no ids of this one.
      const others = Object.entries(things)
        .filter(([name]) => name !== route.of && name !== 'token')
        .map(([, id]) => id)
      for (const id of [...wrong, ...others]) {
        const all = Object.fromEntries(Object.keys(things).map((name) => [name, id])) as Things
        const answer = await visit(ours.owner.visitor, route, pathTo(route, all))
        expect([id, answer.status]).toEqual([id, 404])
      }
      expect(await contents(served)).toBe(before)
    },
  )

  test.for(named(({ method, isStream }) => method === 'GET' && !isStream))('sees %s', async ([, route], { expect }) => {
    // Whoever is signed in is led on from the page for signing in.
    const status = route.path === '/sign-in' ? 303 : 200
    const answer = await ours.owner.visitor.get(pathTo(route, ours.things))
    expect(answer.status).toBe(status)
    const head = await ours.owner.visitor.send('HEAD', pathTo(route, ours.things))
    expect([head.status, head.text]).toEqual([status, ''])
  })
})

test('nobody finds a page that there is not', async () => {
  for (const path of [
    '/nothing',
    '/api-keys/',
    '//api-keys',
    '/assets/none/pico.css',
    '/api-keys/new/x',
    '/.env',
    '/settings/audit-log.csv',
  ]) {
    for (const visitor of [new Visitor(served.url), ours.owner.visitor]) {
      const answer = await visitor.get(path)
      expect([path, answer.status]).toEqual([path, 404])
      expect(pageText(answer)).toContain('This page doesn’t exist, or what it showed was deleted.')
    }
  }
  expect((await ours.owner.visitor.post('/nothing')).status).toBe(404)
  expect(
    (await ours.owner.visitor.send('PUT', '/profile', { headers: { 'Sec-Fetch-Site': 'same-origin' } })).status,
  ).toBe(404)
})
