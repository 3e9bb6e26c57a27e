/** What the compiler lets authors of workflows write; `npm run check` holds these as much as `npm test` does. */
import type { BrowserContext } from 'playwright-core'
import { expect, expectTypeOf, test } from 'vitest'
import { defineWorkflow } from '../../src/domain/workflows/define-workflow.ts'

const common = {
  id: 'example',
  version: '1.0.0',
  title: 'Example',
  variables: { type: 'object', required: ['url'], properties: { url: { type: 'string' } } },
  output: { type: 'string' },
} as const

test('a workflow with `browser: true` is given a browser, beside all that others are given', () => {
  const workflow = defineWorkflow({
    ...common,
    browser: true,
    run: async ({ browser, variables, artifact }) => {
      expectTypeOf(browser).toEqualTypeOf<() => Promise<BrowserContext>>()
      expectTypeOf(variables.url).toEqualTypeOf<string>()
      // @ts-expect-error: the service would not keep this media type.
      await artifact('page.html', '', { mediaType: 'text/html' })
      return 'done'
    },
  })
  expect(workflow.browser).toBe(true)
})

test('a workflow without it has no browser in what it is given', () => {
  defineWorkflow({
    ...common,
    run: (context) => {
      expectTypeOf(context).not.toHaveProperty('browser')
      expectTypeOf(context).toHaveProperty('artifact')
      // @ts-expect-error: it has not asked for one.
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

test('variables and output keep their types in both', () => {
  defineWorkflow({
    ...common,
    browser: true,
    // @ts-expect-error: the output is a string.
    run: async () => 7,
  })
  defineWorkflow({
    ...common,
    // @ts-expect-error: there is no such variable.
    run: ({ variables }) => variables.address,
  })
})
