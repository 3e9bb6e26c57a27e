/** Shared by the workflows of a shop. */
import type { Page } from 'playwright-core'

export const shopVariables = {
  type: 'object',
  required: ['url'],
  properties: { url: { type: 'string' } },
} as const

/** Loads one page. */
export async function isSignedOut(page: Page, { variables }: { variables: unknown }): Promise<boolean> {
  const { url } = variables as { url: string }
  await page.goto(new URL('/orders', url).href)
  return new URL(page.url()).pathname === '/sign-in'
}
