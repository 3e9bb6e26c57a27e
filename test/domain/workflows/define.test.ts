/** The types that authors of workflows see; `npm run check` verifies them. */
import type { BrowserContext, BrowserContextOptions } from 'playwright-core'
import { expect, expectTypeOf, test } from 'vitest'
import { defineWorkflow } from '../../../src/domain/workflows/define-workflow.ts'

const common = {
  id: 'example',
  version: '1.0.0',
  title: 'Example',
  variables: { type: 'object', required: ['url'], properties: { url: { type: 'string' } } },
  output: { type: 'string' },
} as const

test('a workflow with `browser: true` gets a browser', () => {
  const workflow = defineWorkflow({
    ...common,
    browser: true,
    run: async ({ browser, variables, artifact }) => {
      expectTypeOf(browser).toEqualTypeOf<
        (options?: Omit<BrowserContextOptions, 'storageState'>) => Promise<BrowserContext>
      >()
      expectTypeOf(variables.url).toEqualTypeOf<string>()
      // @ts-expect-error: the service does not accept this media type.
      await artifact('page.html', '', { mediaType: 'text/html' })
      return 'done'
    },
  })
  expect(workflow.browser).toBe(true)
})

test('a workflow without `browser: true` gets no browser', () => {
  defineWorkflow({
    ...common,
    run: (context) => {
      expectTypeOf(context).not.toHaveProperty('browser')
      expectTypeOf(context).toHaveProperty('artifact')
      // @ts-expect-error: there is no browser.
      return String(context.browser)
    },
  })
  defineWorkflow({
    ...common,
    browser: false,
    run: (context) => {
      expectTypeOf(context).not.toHaveProperty('browser')
      return 'done'
    },
  })
})

test('variables and output are typed by their schemas', () => {
  defineWorkflow({
    ...common,
    browser: true,
    // @ts-expect-error: the output is a string.
    run: async () => 7,
  })
  defineWorkflow({
    ...common,
    // @ts-expect-error: the schema has no such variable.
    run: ({ variables }) => variables.address,
  })
})
