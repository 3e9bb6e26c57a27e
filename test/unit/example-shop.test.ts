/** The shop of the example website, by HTTP: how its sessions end, and which proofs its sign-in asks for. */
import { Secret, TOTP } from 'otpauth'
import { expect, onTestFinished, test } from 'vitest'
import type { CustomerOptions } from '../../examples/site/customers.ts'
import { startSite } from '../../examples/site/site.ts'

const password = 'kettle-friday-1138'

async function openShop(options: CustomerOptions = {}) {
  const site = await startSite({ token: 'of no member', password }, 0, options)
  onTestFinished(() => site.stop())
  return site
}

/** A browser with cookies, which follows no redirect. */
function visit(url: string) {
  const cookies = new Map<string, string>()
  return async (path: string, form?: Record<string, string>) => {
    const headers = { Cookie: [...cookies].map(([name, value]) => `${name}=${value}`).join('; ') }
    const body = form ? new URLSearchParams(form) : null
    const response = await fetch(url + path, { method: form ? 'POST' : 'GET', headers, body, redirect: 'manual' })
    for (const line of response.headers.getSetCookie()) {
      const [name = '', value = ''] = line.split(';')[0]?.split('=') ?? []
      cookies.set(name, value)
    }
    const heading = /<h1>(.*)<\/h1>/.exec(await response.text())?.[1]
    return { status: response.status, location: response.headers.get('Location'), heading }
  }
}

const signIn = { userName: 'ada', password }
const signedOut = { status: 303, location: '/sign-in' }

test('a session lasts, unless it is too old, its end is drawn, or its customer signs in elsewhere', async () => {
  const lasting = await openShop()
  const old = await openShop({ sessionSeconds: 0 })
  const drawn = await openShop({ endRate: 0.2, seed: 'one' })
  const again = await openShop({ endRate: 0.2, seed: 'one' })
  const single = await openShop({ oneSession: true, customers: ['ada', 'bob'] })
  const load = async (visitor: ReturnType<typeof visit>) => (await visitor('/orders')).status
  const firstEnd = async (site: { url: string }, max = 30) => {
    const visitor = visit(site.url)
    await visitor('/sign-in', signIn)
    for (let request = 1; request <= max; request += 1) if ((await load(visitor)) === 303) return request
    return undefined
  }
  expect(await firstEnd(lasting)).toBeUndefined()
  expect(lasting.counts()).toEqual({ signIns: 1, endedSessions: 0, orderRequests: 30 })
  expect(await firstEnd(old)).toBe(1)
  const end = await firstEnd(drawn)
  expect(end).toBeGreaterThan(0)
  expect(await firstEnd(again)).toBe(end)
  const [first, elsewhere, bob] = [visit(single.url), visit(single.url), visit(single.url)]
  await first('/sign-in', signIn)
  await bob('/sign-in', { ...signIn, userName: 'bob' })
  expect([await load(first), await load(bob)]).toEqual([200, 200])
  await elsewhere('/sign-in', signIn)
  expect([await load(first), await load(elsewhere), await load(bob)]).toEqual([303, 200, 200])
  expect(single.counts('ada')).toMatchObject({ signIns: 2, endedSessions: 1 })
})

test('a sign-in needs each proof in order, and a captcha comes again until it is answered', async () => {
  const totp = new TOTP({ secret: new Secret({ size: 20 }) })
  const mails: string[] = []
  const { url } = await openShop({
    captchaRate: 0.5,
    // Draws the captcha for the first of the three sign-ins, not for the second.
    seed: 'three',
    totpSeed: totp.secret.base32,
    mailCode: true,
    onMail: ({ code }) => mails.push(code),
  })
  const visitor = visit(url)
  const proof = (code = '') => visitor('/sign-in/proof', { code })
  const heading = async () => (await visitor('/sign-in/proof')).heading
  for (const _ of [1, 2, 3]) {
    await visitor('/sign-in', signIn)
    expect(await heading()).toBe('Are you a person?')
  }
  await proof()
  expect(await heading()).toBe('Two-factor authentication')
  expect(await proof('000000')).toMatchObject({ status: 403, heading: 'Two-factor authentication' })
  await proof(totp.generate())
  expect(await heading()).toBe('Check your mail')
  expect(await visitor('/orders')).toMatchObject(signedOut)
  expect(await proof(mails.at(-1))).toMatchObject({ status: 303, location: '/orders' })
  expect(await visitor('/orders')).toMatchObject({ status: 200, heading: 'Your orders' })
  expect(await visitor('/sign-in/proof')).toMatchObject(signedOut)
  expect(await visit(url)('/sign-in', { ...signIn, password: 'a guess' })).toMatchObject({ status: 403 })
})
