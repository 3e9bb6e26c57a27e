/** Two-factor authentication and sessions in a browser, with and without JavaScript. */
import type { Page } from 'playwright-core'
import { expect, test } from 'vitest'
import { browserErrors } from '../support/browser.ts'
import { type Dashboard, owner, signIn, startDashboard } from '../support/dashboard-browser.ts'
import { codeOf, enterPassword, setUpTwoFactor } from '../support/dashboard-pages.ts'
import type { Test } from '../support/domain.ts'

/** A service whose owner signs in with a password alone. Each test has one, since it changes how the owner signs in. */
async function openDashboard(test: Test): Promise<Dashboard> {
  const dashboard = await startDashboard()
  test.onTestFinished(dashboard.stop)
  await dashboard.createOwner()
  return dashboard
}

async function enterCode(page: Page, label: 'Code' | 'Recovery code', code: string): Promise<void> {
  if (label === 'Recovery code') await page.getByText('Use a recovery code').click()
  await page.getByLabel(label, { exact: true }).fill(code)
  await page.getByLabel(label, { exact: true }).press('Enter')
}

const overview = (page: Page) => page.getByRole('heading', { name: 'Overview' })

test.for([true, false])(
  'a user sets it up, signs in with it, and removes it (JavaScript: %s)',
  async (javaScriptEnabled, test) => {
    const dashboard = await openDashboard(test)
    const [page, other] = [await dashboard.open(test, { javaScriptEnabled }), await dashboard.open(test)]
    for (const each of [page, other]) await signIn(each)
    await page.goto('/profile')
    await page.getByRole('link', { name: 'Set up' }).click()
    await page.getByRole('img', { name: 'QR code for your authenticator app' }).waitFor()
    const secret = await setUpTwoFactor(page)
    const codes = (await page.locator('#recovery-codes').innerText()).split('\n')
    expect(codes).toHaveLength(10)
    await page.getByRole('link', { name: 'I have kept them' }).click()
    await page.getByText('10 of 10 recovery codes are left.').waitFor()
    await other.reload()
    await other.getByRole('heading', { name: 'Sign in' }).waitFor()

    await enterPassword(other)
    await enterCode(other, 'Code', '000000')
    await other.getByText('This code is incorrect or was already used.').waitFor()
    await enterCode(other, 'Code', codeOf(secret, 1))
    await overview(other).waitFor()
    await enterPassword(page)
    await enterCode(page, 'Recovery code', codes[0] ?? '')
    await overview(page).waitFor()
    await page.goto('/profile/two-factor')
    await page.getByText('9 of 10 recovery codes are left.').waitFor()

    const removal = page.locator('form', { hasText: 'Remove two-factor authentication' })
    await removal.getByLabel('Current password').fill(owner.password)
    await removal.getByLabel('Current code').fill(codes[1] ?? '')
    await removal.getByRole('button').click()
    await page.getByText('Two-factor authentication removed.').waitFor()
    await signIn(await dashboard.open(test))
    // Among others for the content security policy, which the QR code must not violate.
    expect(await browserErrors(page)).toEqual([])
  },
)

test('a user ends another session, and then all of them', async (test) => {
  const dashboard = await openDashboard(test)
  const [page, other] = [await dashboard.open(test), await dashboard.open(test)]
  for (const each of [page, other]) await signIn(each)
  await page.goto('/profile')
  const rows = page.getByRole('table', { name: 'Sessions' }).getByRole('row').filter({ hasNotText: 'This session' })
  await rows
    .filter({ hasText: /Chrome on/ })
    .first()
    .getByRole('button', { name: /^End/ })
    .click()
  await page.getByText('Session ended.').waitFor()
  await other.reload()
  await other.getByRole('heading', { name: 'Sign in' }).waitFor()
  await signIn(other)
  await page.getByRole('button', { name: 'Sign out everywhere' }).click()
  await page.getByText('You are signed out everywhere.').waitFor()
  await other.reload()
  await other.getByRole('heading', { name: 'Sign in' }).waitFor()
})

test('an account that requires it leads its users to set it up, and the operator removes a lost one', async (test) => {
  const dashboard = await openDashboard(test)
  const page = await dashboard.open(test)
  await signIn(page)
  await page.goto('/settings')
  await page.getByLabel('Require it for every member').check()
  await page.getByRole('button', { name: 'Save changes' }).click()
  await page.getByText('Default requires two-factor authentication.').waitFor()
  await setUpTwoFactor(page)
  await page.goto('/')
  await overview(page).waitFor()

  const remove = () => dashboard.installation.runCommand('users', 'remove-second-factor', '--email', owner.email)
  const { code, stdout } = await remove()
  expect([code, stdout]).toEqual([
    0,
    `Removed. "${owner.name}" is signed out everywhere and signs in with their password alone.\n`,
  ])
  const again = await remove()
  expect([again.code, again.stderr]).toEqual([1, `"${owner.name}" does not use two-factor authentication.\n`])
  await page.reload()
  await page.getByLabel('Email').fill(owner.email)
  await page.getByLabel('Password').fill(owner.password)
  await page.getByRole('button', { name: 'Sign in' }).click()
  await page.getByText('Default requires two-factor authentication.').waitFor()
})
