/** The docs of an account's workflows: who sees them, and what they say. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { operator } from '../../src/domain/audit-log/audit-log.ts'
import { parseWorkflow } from '../../src/domain/workflows/workflow.ts'
import { renderWorkflowPage } from '../../src/surfaces/docs/markdown.ts'
import { workflowMarkdown } from '../../src/surfaces/docs/workflow-markdown.ts'
import { type DashboardService, signIn, startDashboardService, Visitor } from '../support/dashboard.ts'
import { siteText } from './site.ts'

let dashboard: DashboardService
beforeAll(async () => {
  dashboard = await startDashboardService()
})
afterAll(() => dashboard.stop())

const pathOf = (page: string) => `/docs/workflows/${page}`

function get(page: string, headers: Record<string, string> = {}) {
  return fetch(dashboard.executionUrl + pathOf(page), { headers, redirect: 'manual' })
}

test('a signed-in user reads the docs of each workflow, and follows links that exist', async () => {
  const { visitor } = await signIn(dashboard)
  const list = await visitor.get(pathOf(''))
  expect(list.status).toBe(200)
  expect(list.text).toContain('<h1 id="your-workflows">Your workflows</h1>')
  const page = await visitor.get(pathOf('greet'))
  expect(page.status).toBe(200)
  expect(page.headers['cache-control']).toBe('no-store')
  expect(page.text).toContain(`${dashboard.executionUrl}/v1/execution/queue-remote/greet`)
  expect(page.text).toContain('aria-current="page"')
  const links = [...page.text.matchAll(/(?:href|src)="(?!#|https?:)([^"#]+)/g)].map(([, link = '']) => link)
  for (const link of new Set(links)) {
    const { pathname } = new URL(link, dashboard.url + pathOf('greet'))
    expect([link, (await visitor.get(pathname)).status]).toEqual([link, 200])
  }
})

test('others are sent to the sign-in page, and back afterwards', async () => {
  const visitor = new Visitor(dashboard.url)
  const refused = await visitor.get(pathOf('greet'))
  expect([refused.status, refused.headers.location]).toEqual([
    303,
    `/sign-in?next=${encodeURIComponent(pathOf('greet'))}`,
  ])
  const fromApi = await get('greet', { Accept: 'text/html' })
  expect([fromApi.status, fromApi.headers.get('location')]).toEqual([302, dashboard.dashboardUrl + pathOf('greet')])
})

test('an API key with workflows:read reads them as Markdown or HTML; without one, the response is 401 or 403', async () => {
  const { accountId, id: userId } = await signIn(dashboard, { scopesEnabled: true })
  const createKey = (scopes: string[] | null) =>
    dashboard.domain.apiKeys.create({ accountId, userId, name: 'docs', scopes, expiresAt: null }, operator)
  const { value: key } = await createKey(null)
  const withKey = (value: string) => ({ Authorization: `Bearer ${value}` })
  const markdown = await get('greet.md', withKey(key))
  expect([markdown.status, markdown.headers.get('content-type')]).toEqual([200, 'text/markdown; charset=utf-8'])
  expect(await markdown.text()).toMatch(/^# /)
  expect((await get('greet', withKey(key))).headers.get('content-type')).toBe('text/html; charset=utf-8')
  expect((await get('index.md', withKey(key))).status).toBe(200)
  const { value } = await createKey(['runs:read'])
  expect((await get('greet.md', withKey(value))).status).toBe(403)
  const refused = await get('greet.md')
  expect([refused.status, await refused.text()]).toEqual([401, 'Unauthorized'])
  expect(refused.headers.get('www-authenticate')).toMatch(/^Bearer /)
  const unknown = await get('nothing', withKey(key))
  expect([unknown.status, await unknown.text()]).toEqual([404, expect.stringContaining('Workflow not found')])
})

test('the page of a workflow describes nested members, secrets and limits, and shows HTML as text', () => {
  const workflow = parseWorkflow('w.ts', {
    id: 'w',
    version: '1.0.0',
    title: 'A <b>title</b> | *starred*',
    description: 'Reads <script>alert(1)</script>.',
    deprecated: true,
    browser: true,
    timeLimitSeconds: 7,
    variables: {
      type: 'object',
      required: ['list'],
      properties: {
        list: { type: 'array', items: { type: 'object', properties: { 'a|b': { type: 'number', minimum: 3 } } } },
        token: { type: 'string', writeOnly: true, description: 'A | token.' },
        mode: { enum: ['`', null], default: null },
      },
    },
    output: { type: 'string', format: 'uri' },
    run: () => null,
  })
  const markdown = workflowMarkdown(workflow, { executionUrl: 'http://x', root: '../' })
  const { html } = renderWorkflowPage(markdown)
  expect(html).not.toMatch(/<script>|<b>/)
  expect(html).toContain('<td><code>list[].a|b</code></td>\n<td>number</td>\n<td>At least 3.</td>')
  expect(html).toContain('<td>A | token. Secret: stored encrypted, and masked in every response.</td>')
  expect(html).toContain('<td>One of <code>&quot;`&quot;</code>, <code>null</code>. Default <code>null</code>.</td>')
  expect(html).toContain('href="../browser-contexts.html"')
  expect(markdown).toMatch(/Deprecated.*An attempt may take 7 s\./s)
})

test('the page of a workflow describes the answers that its runs wait for', () => {
  const workflow = parseWorkflow('w.ts', {
    ...{ id: 'w', version: '1.0.0', title: 'W', variables: { type: 'object' }, output: {}, run: () => null },
    waits: {
      approval: {
        title: 'Refund?',
        description: 'The *refund* of an order.',
        schema: { type: 'object', required: ['approved'], properties: { approved: { type: 'boolean' } } },
      },
      'any thing': { schema: {} },
    },
  })
  workflow.examples = { variables: [], outputs: [], answers: { approval: { approved: false } } }
  const markdown = workflowMarkdown(workflow, { executionUrl: 'http://x', root: '../' })
  const { html } = renderWorkflowPage(markdown)
  expect(html).toContain('<h2 id="answers">')
  expect(html).toMatch(
    /<h3 id="approval">.*<code>approval<\/code>.*<\/h3>\n<p>Title: Refund\?<\/p>\n<p>The <em>refund<\/em> of an order\.<\/p>/,
  )
  expect(html).toContain('<td><code>approved</code></td>\n<td>boolean</td>\n<td>Required.</td>')
  expect(markdown).toContain('```json\n{\n  "value": {\n    "approved": false\n  }\n}\n```')
  expect(markdown).toContain('### `any thing`\n\nThe answer can be any JSON value.\n')
  const { waits: _, ...without } = workflow
  expect(workflowMarkdown(without, { executionUrl: 'http://x', root: '../' })).not.toContain('## Answers')
})

test('the public docs have a page with samples for each example, and none for other workflows', async () => {
  const page = await siteText('example-count-words.html')
  expect(page).toContain('Count the words of a text file')
  expect(page).toContain('queue-remote/count-words')
  expect(await siteText('llms.txt')).toContain('(example-count-words.md)')
})
