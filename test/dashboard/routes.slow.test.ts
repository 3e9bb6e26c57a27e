/** Access control of every route: sign-in, roles and account isolation. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { includesRole, type Role } from '../../src/domain/accounts/roles.ts'
import { pageRoles } from '../../src/surfaces/dashboard/page-roles.ts'
import {
  type DashboardService,
  type SignedInUser,
  signIn,
  startDashboardService,
  Visitor,
} from '../support/dashboard.ts'
import { type Markup, pageText, readDocument } from '../support/html.ts'
import { createItems, type Items, type Route, routeName, routePath, routes, servedRoutes } from './route-list.ts'

let dashboard: DashboardService
let account: Awaited<ReturnType<typeof createItems>>
let otherAccount: Awaited<ReturnType<typeof createItems>>

beforeAll(async () => {
  dashboard = await startDashboardService()
  account = await createItems(dashboard)
  otherAccount = await createItems(dashboard)
})

afterAll(() => dashboard.stop())

/** Selects routes, with their names for `test.for`. */
function named(which: (route: Route) => boolean): [string, Route][] {
  return routes.filter(which).map((route) => [routeName(route), route])
}

function visit(visitor: Visitor, { method }: Route, path: string) {
  return method === 'GET' ? visitor.get(path) : visitor.post(path)
}

/** Reads all tables except sessions, which change at sign-in. */
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
    'schedules',
    'webhook_endpoints',
    'webhook_deliveries',
    'notification_rules',
    'run_followers',
  ] as const
  const rows = await Promise.all(tables.map((table) => query.selectFrom(table).selectAll().execute()))
  // The last use of a key is recorded with a delay.
  return JSON.stringify(rows, (name, value) => (name.startsWith('last_used') ? null : value))
}

/** Without an identity provider. */
const withoutProvider = { '/sign-in/provider': 404, '/sign-in/provider/callback': 404, '/sign-out/provider': 404 }

test('the tests cover every route of the dashboard', () => {
  expect(routes.map(routeName).sort()).toEqual(servedRoutes().sort())
  expect(Object.keys(pageRoles).sort()).toEqual(servedRoutes().sort())
  for (const { path, of } of routes) expect([path, of !== undefined]).toEqual([path, path.includes(':id')])
})

describe('without a session', () => {
  test.for(named(({ role }) => role !== 'everyone'))(
    '%s redirects to the sign-in page',
    async ([, route], { expect }) => {
      const before = await contents(dashboard)
      const path = routePath(route, account.items)
      const forged = new Visitor(dashboard.url)
      for (const name of account.owner.visitor.cookies.keys()) forged.cookies.set(name, 's%3Aforged.signature')
      for (const visitor of [new Visitor(dashboard.url), forged]) {
        const { status, headers, text } = await visit(visitor, route, path)
        const next = route.method === 'GET' && path !== '/' ? `?next=${encodeURIComponent(path)}` : ''
        expect([status, headers.location]).toEqual([303, `/sign-in${next}`])
        expect(text).toBe('')
      }
      expect(await contents(dashboard)).toBe(before)
    },
  )

  test('forms are refused before their body is read', async () => {
    for (const route of routes.filter(({ method, role }) => method === 'POST' && role !== 'everyone')) {
      const body = 'x'.repeat(5 * 1024 * 1024)
      const headers = { 'Sec-Fetch-Site': 'same-origin', 'Content-Type': 'application/json' }
      const response = await new Visitor(dashboard.url).send('POST', routePath(route, account.items), { headers, body })
      expect([routeName(route), response.status]).toEqual([routeName(route), 303])
    }
  })
})

/** The roles with members that the test creates besides the admin. */
const lesserRoles = ['viewer', 'operator', 'developer'] as const

describe.each(lesserRoles)('a member with the role %s', (role) => {
  let member: SignedInUser

  beforeAll(async () => {
    member = await signIn(dashboard, { accountId: account.owner.accountId, role, name: 'Cy' })
  })

  test('is refused what needs another role, with a page that names it', async () => {
    const before = await contents(dashboard)
    for (const route of routes.filter((each) => isRefused(role, each))) {
      for (const items of [account.items, { ...account.items, user: member.id }, otherAccount.items]) {
        const response = await visit(member.visitor, route, routePath(route, items))
        expect([routeName(route), response.status]).toEqual([routeName(route), 403])
        expect(pageText(response)).toContain(`This needs the role ${route.role}. Your role is ${role}.`)
      }
    }
    expect(await contents(dashboard)).toBe(before)
  })

  test('sees on each page what the admin sees there, except what they may not', async () => {
    const pages = routes.filter((each) => each.method === 'GET' && !each.isStream && !isRefused(role, each))
    for (const route of pages.filter(({ of, role }) => of !== 'apiKey' && role !== 'everyone')) {
      const path = routePath(route, account.items)
      const [theirs, all] = [await member.visitor.get(path), await account.owner.visitor.get(path)]
      expect([path, theirs.status]).toEqual([path, all.status])
      if (!String(theirs.headers['content-type']).startsWith('text/html')) continue
      const expected = leadsTo(all, path).filter((each) => !isRefused(role, each))
      expect([path, leadsTo(theirs, path).map(routeName)]).toEqual([path, expected.map(routeName)])
    }
  })
})

const isSignOut = ({ path }: Route) => path === '/profile/sign-out-everywhere'

function isRefused(role: Role, route: Route): boolean {
  return route.role !== 'everyone' && !includesRole(role, route.role)
}

/** The routes that links and forms of the page lead to. Only its creator sees what renames or rotates an API key. */
function leadsTo(page: Markup, path: string): Route[] {
  const document = readDocument(page)
  const link = (element: Element, name: string) =>
    new URL(element.getAttribute(name) ?? path, `http://dashboard${path}`).pathname
  const targets = [
    ...[...document.querySelectorAll('a[href]')].map((each) => ['GET', link(each, 'href')]),
    ...[...document.querySelectorAll('form')].map((each) => [each.method.toUpperCase(), link(each, 'action')]),
  ]
  return routes
    .filter(({ of }) => of !== 'apiKey')
    .filter(({ method, path }) => {
      const pattern = new RegExp(`^${path.replaceAll(/:\w+/g, '[^/]+')}$`)
      const fixed = routes.map((each) => each.path)
      return targets.some(
        ([by, to = '']) => by === method && (path === to || (pattern.test(to) && !fixed.includes(to))),
      )
    })
}

describe('a developer', () => {
  test('cannot rename, rotate or delete the API key of another user', async () => {
    const before = await contents(dashboard)
    for (const route of routes.filter(({ of }) => of === 'apiKey')) {
      const response = await visit(account.member.visitor, route, routePath(route, account.items))
      expect([routeName(route), response.status]).toEqual([routeName(route), 403])
      expect(pageText(response)).toContain('Only the user who created an API key')
    }
    expect(await contents(dashboard)).toBe(before)
  })
})

/** A run that waits has the pages of every run, too. */
const kindOf = (name: string | undefined) => (name === 'waitingRun' ? 'run' : name)

describe('an admin', () => {
  test.for(named(({ of }) => of !== undefined && of !== 'workflow'))(
    'of another account gets 404 at %s',
    async ([, route], { expect }) => {
      const before = await contents(dashboard)
      const response = await visit(otherAccount.owner.visitor, route, routePath(route, account.items))
      expect(response.status).toBe(404)
      expect(pageText(response)).not.toContain('Ada of')
      expect(response.text).not.toContain(account.items[route.of ?? 'token'])
      expect(await contents(dashboard)).toBe(before)
    },
  )

  test.for(named(({ path, of }) => of !== undefined && path.split(':').length > 2))(
    'gets 404 at %s for ids of two resources that do not belong together',
    async ([, route], { expect }) => {
      const before = await contents(dashboard)
      const [mine, theirs] = [account, otherAccount].map(({ items }) => routePath(route, items))
      for (const name of Object.keys(account.items) as (keyof Items)[]) {
        for (const [own, other] of [
          [account, otherAccount],
          [otherAccount, account],
        ] as const) {
          const path = routePath(route, { ...own.items, [name]: other.items[name] })
          for (const [{ owner }, ofOwner] of [
            [account, mine],
            [otherAccount, theirs],
          ] as const) {
            if (path === ofOwner) continue
            const { status } = await visit(owner.visitor, route, path)
            expect([path, status]).toEqual([path, 404])
          }
        }
      }
      expect(await contents(dashboard)).toBe(before)
    },
  )

  test.for(named(({ of }) => of !== undefined))('gets 404 at %s for an unknown id', async ([, route], { expect }) => {
    const before = await contents(dashboard)
    const { items } = account
    const invalid = [
      crypto.randomUUID(),
      'none',
      '%00',
      '%F0%9F%94%91',
      'a'.repeat(3000),
      "'%20OR%20''='",
      '..%2f..',
      '__proto__',
    ]
    // Ids of other kinds of items are unknown too.
    const others = Object.entries(items)
      .filter(([name]) => kindOf(name) !== kindOf(route.of) && name !== 'token' && name !== 'answer')
      .map(([, id]) => id)
    for (const id of [...invalid, ...others]) {
      const all = Object.fromEntries(Object.keys(items).map((name) => [name, id])) as Items
      const response = await visit(account.owner.visitor, route, routePath(route, all))
      expect([id, response.status]).toEqual([id, 404])
    }
    expect(await contents(dashboard)).toBe(before)
  })

  test.for(named(({ method, isStream }) => method === 'GET' && !isStream))(
    'can open %s',
    async ([, route], { expect }) => {
      // The sign-in page redirects a signed-in user.
      // The form of a signed-in user, the deletion of a run that has not finished, and pages of a sign-in that there is not,
      // lead elsewhere. The docs of workflows have a slash at the end.
      const redirects: Record<string, number> = {
        ...{ '/sign-in': 303, '/runs/:id/delete': 303, '/docs/workflows': 308 },
        ...{ '/browser-contexts/:id/sign-in/by-hand': 303, '/browser-contexts/:id/sign-in/delete': 303 },
        ...withoutProvider,
      }
      const status = redirects[route.path] ?? 200
      const response = await account.owner.visitor.get(routePath(route, account.items))
      expect(response.status).toBe(status)
      const head = await account.owner.visitor.send('HEAD', routePath(route, account.items))
      expect([head.status, head.text]).toEqual([status, ''])
    },
  )
})

// Last, because an action on many runs goes on after its test.
describe.each(lesserRoles)('a member with the role %s', (role) => {
  test('is not refused any other form', async () => {
    const created = await createItems(dashboard)
    const { visitor } = await signIn(dashboard, { accountId: created.owner.accountId, role, name: 'Di' })
    const allowed = routes.filter(
      (each) => each.method === 'POST' && !isRefused(role, each) && each.role !== 'everyone',
    )
    // It comes last, since it ends the session.
    const ordered = allowed.toSorted((a, b) => Number(isSignOut(a)) - Number(isSignOut(b)))
    for (const route of ordered.filter(({ of }) => of !== 'apiKey')) {
      const response = await visit(visitor, route, routePath(route, created.items))
      expect([routeName(route), response.status]).not.toEqual([routeName(route), 403])
      expect(response.headers.location ?? '').not.toContain('/sign-in?next')
    }
  })
})

test('unknown paths return 404', async () => {
  for (const path of [
    '/nothing',
    '/api-keys/',
    '//api-keys',
    '/assets/none/pico.css',
    '/api-keys/new/x',
    '/.env',
    '/settings/audit-log.csv',
  ]) {
    for (const visitor of [new Visitor(dashboard.url), account.owner.visitor]) {
      const response = await visitor.get(path)
      expect([path, response.status]).toEqual([path, 404])
      expect(pageText(response)).toContain('This page doesn’t exist, or what it showed was deleted.')
    }
  }
  expect((await account.owner.visitor.post('/nothing')).status).toBe(404)
  expect(
    (await account.owner.visitor.send('PUT', '/profile', { headers: { 'Sec-Fetch-Site': 'same-origin' } })).status,
  ).toBe(404)
})
