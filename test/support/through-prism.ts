/**
 * With `THROUGH_PRISM` in its environment, a test calls every service that it starts as a process through Prism, and
 * fails for each request and each answer that Prism finds a fault with.
 */
import { afterEach, expect } from 'vitest'
import type { Addresses } from './service.ts'
import type { ValidationProxy } from './validation-proxy.ts'

const proxies = new Set<ValidationProxy>()

/** The addresses that tests are to call, in the place of those of the service. */
export async function addressesForTests<Of extends Addresses>(addresses: Of): Promise<Of> {
  if (!process.env.THROUGH_PRISM) return addresses
  // Loaded only here: it takes half a second.
  const { startValidationProxy } = await import('./validation-proxy.ts')
  const [execution, browserContext] = await Promise.all([
    startValidationProxy('execution.v1', addresses.executionUrl),
    startValidationProxy('browser-context.alpha', addresses.browserContextUrl),
  ])
  proxies.add(execution).add(browserContext)
  return { ...addresses, executionUrl: execution.url, browserContextUrl: browserContext.url }
}

if (process.env.THROUGH_PRISM) {
  afterEach(async () => {
    const violations = await Promise.all([...proxies].map((proxy) => proxy.violations()))
    expect(violations.flat(), 'Prism finds requests or answers that do not fit the document').toEqual([])
  })
}
