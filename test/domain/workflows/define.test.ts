/** The types that authors of workflows see; `npm run check` verifies them. */
import type { BrowserContext, BrowserContextOptions } from 'playwright-core'
import { expect, expectTypeOf, test } from 'vitest'
import { type Answer, CalledRunFailed, defineWorkflow } from '../../../src/domain/workflows/define-workflow.ts'

declare module '../../../src/domain/workflows/define-workflow.ts' {
  interface CalledWorkflows {
    'typed-invoice': { variables: { orderId: string }; output: { total: number } }
  }
}

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

test('an answer has the type of its declared schema, and a wait that is not declared is a type error', () => {
  defineWorkflow({
    ...common,
    waits: {
      approval: { schema: { type: 'object', required: ['approved'], properties: { approved: { type: 'boolean' } } } },
      code: { schema: { type: 'string' }, title: 'Which code?' },
    },
    run: async ({ waitFor, sleep }) => {
      const approval = await waitFor('approval', { timeoutSeconds: 60, show: { amount: 5 } })
      expectTypeOf(approval).toEqualTypeOf<Answer<{ approved: boolean }>>()
      const code = await waitFor('code')
      expectTypeOf(code).toEqualTypeOf<Answer<string>>()
      // @ts-expect-error: the definition declares no such wait.
      await waitFor('refusal')
      await sleep('until', { until: new Date() })
      await sleep('pause', { days: 3, hours: 1 })
      // @ts-expect-error: either a period or its end.
      await sleep('both', { days: 3, untill: new Date() })
      return code.ok ? code.value : ''
    },
  })
  defineWorkflow({
    ...common,
    browser: true,
    waits: { code: { schema: { type: 'string' } } },
    run: async ({ waitFor }) => {
      const code = await waitFor('code')
      return code.ok ? code.value : ''
    },
  })
  defineWorkflow({
    ...common,
    // @ts-expect-error: the definition declares no waits.
    run: async ({ waitFor }) => String(await waitFor('approval')),
  })
})

test('a call has the type that the workflow has in the map, or that the author gives', () => {
  defineWorkflow({
    ...common,
    run: async ({ call }) => {
      const invoice = await call('bill', 'typed-invoice', { orderId: 'o-1' }, { detached: true, tags: ['a'] })
      expectTypeOf(invoice).toEqualTypeOf<{ total: number }>()
      // @ts-expect-error: the variables lack a member.
      await call('bill', 'typed-invoice', {})
      // @ts-expect-error: a workflow of the map needs its variables.
      await call('bill', 'typed-invoice')
      expectTypeOf(await call('other', 'other', { any: 1 })).toEqualTypeOf<unknown>()
      expectTypeOf(await call('other', 'other')).toEqualTypeOf<unknown>()
      expectTypeOf(await call<{ total: number }>('other', 'other', { any: 1 })).toEqualTypeOf<{ total: number }>()
      // @ts-expect-error: the option does not exist.
      await call('other', 'other', {}, { delaySeconds: 5 })
      return String(invoice.total)
    },
  })
})

test('a called run that failed is an error with its ID, status and error', () => {
  const failed = { runId: 'r', status: 'failed', error: { name: 'CardDeclined', message: 'no funds' } }
  expect(new CalledRunFailed('bill', failed)).toMatchObject({
    name: 'CalledRunFailed',
    message: 'Run r, called as "bill", has ended as failed: CardDeclined: no funds',
    ...failed,
  })
  expect(new CalledRunFailed('bill', { ...failed, status: 'cancelled', error: null }).message).toBe(
    'Run r, called as "bill", has ended as cancelled.',
  )
})
