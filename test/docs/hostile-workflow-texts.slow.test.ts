/** Texts of workflows are data: whatever they are, the page around them stays as it is. */
import { expect, test } from 'vitest'
import type { Workflow } from '../../src/domain/workflows/workflow.ts'
import { plainText, renderWorkflowPage } from '../../src/surfaces/docs/markdown.ts'
import { workflowMarkdown } from '../../src/surfaces/docs/workflow-markdown.ts'
import { expectOnlyKnownMarkup, hostileTexts } from './hostile-texts.ts'

const base: Workflow = {
  id: 'w',
  version: '1.0.0',
  title: 'Title',
  description: 'Description.',
  variables: { type: 'object' },
  output: {},
  timeLimitSeconds: 1,
  retry: { maxAttempts: 1, backoffSeconds: 1, backoffFactor: 2 },
  usesBrowser: false,
  evidence: 'off',
  deprecated: false,
}

/** A schema with the text in one of its keywords, of two members, the second of which shows whether the table goes on. */
function withMember(schema: unknown, name = 'member') {
  return { variables: { type: 'object', properties: { [name]: schema, last: { const: 'last' } } } }
}

const withWait = (name: string, wait: object) => ({
  waits: { [name]: { schema: {}, title: null, description: null, ...wait } },
})

const fields: Record<string, (text: string) => object> = {
  title: (title) => ({ title }),
  version: (version) => ({ version }),
  description: (description) => ({ description }),
  'name of a member': (text) => withMember({}, text),
  'description of a member': (description) => withMember({ description, default: '<b>' }),
  'description of the output': (description) => ({ output: { type: 'string', description, const: '<b>' } }),
  'description of nested members': (description) =>
    withMember({ type: 'array', items: { properties: { a: { description } } } }),
  ...Object.fromEntries(
    ['const', 'default', 'format', 'pattern', 'minimum', 'maximum', 'multipleOf', 'minLength', 'maxItems', 'type'].map(
      (keyword) => [keyword, (text: string) => withMember({ [keyword]: text })],
    ),
  ),
  enum: (text) => withMember({ enum: [text, { [text]: text }] }),
  'items of an array': (type) => withMember({ type: 'array', items: { type } }),
  'names in a constant': (text) => ({ output: { const: { [text]: [text] }, type: 'object', required: ['a', text] } }),
  'name of a wait': (text) => withWait(text, {}),
  'title of a wait': (title) => withWait('w', { title }),
  'description of a wait': (description) => withWait('w', { description }),
  'schema of an answer': (description) => withWait('w', { schema: { type: 'string', description, const: '<b>' } }),
  'example of an answer': (text) => ({
    ...withWait(text, {}),
    examples: { variables: [], outputs: [], answers: { [text]: text } },
  }),
  examples: (text) => ({ examples: { variables: [{ value: { [text]: text } }], outputs: [text] } }),
}

const render = (changes: object) =>
  renderWorkflowPage(workflowMarkdown({ ...base, ...changes } as Workflow, { executionUrl: 'http://x', root: '../' }))

test.each(Object.entries(fields))('a hostile %s changes no other part of the page', (_field, toWorkflow) => {
  expect(hostileTexts.length).toBeGreaterThan(200)
  for (const text of hostileTexts) {
    const workflow = toWorkflow(text)
    const { html } = render(workflow)
    expectOnlyKnownMarkup(html, text)
    // What follows the text is as it is without it: the sections, and the rows of the table.
    const sections = [...html.matchAll(/<h2 id="[^"]*"><a class="anchor" href="[^"]*">(.*?)<\/a><\/h2>/g)]
    expect([text, sections.map(([, title]) => title)]).toEqual([
      text,
      expect.arrayContaining(['Variables', 'Queue a run', 'Output', 'Limits', 'Errors']),
    ])
    expect(html).toContain('<a href="../errors.html">Errors</a>')
    if ('variables' in workflow) {
      expect([text, html]).toEqual([
        text,
        expect.stringContaining('<td>Always <code>&quot;last&quot;</code>.</td>\n</tr>'),
      ])
      const [header, ...rows] = html.split('<tr>').slice(1)
      expect([text, header?.match(/<th>/g)?.length]).toEqual([text, 3])
      for (const row of rows) expect([text, row.match(/<td>/g)?.length]).toEqual([text, 3])
    }
  }
})

test.each(['[(', '[', '[x]('])('the plain text of many unclosed %s is found in a moment', (text) => {
  const startedAt = performance.now()
  expect(plainText(text.repeat(20_000))).toBe(text.repeat(20_000))
  expect(performance.now() - startedAt).toBeLessThan(3000)
})

test('values are shown as they are', () => {
  const shown = (text: string) => {
    const [, cell = ''] = /Pattern (.*)\.<\/td>/.exec(render(withMember({ pattern: text })).html) ?? []
    return cell
      .replaceAll(/<\/?code>/g, '')
      .replaceAll('&lt;', '<')
      .replaceAll('&quot;', '"')
      .replaceAll('&gt;', '>')
      .replaceAll('&amp;', '&')
  }
  for (const text of ['^a|b$', 'a\\|b', 'a\\\\|b', '`', '``a`', '<b>', '&lt;', '"', '[a](b)', '*a*', '\\'])
    expect(shown(text)).toBe(text)
  expect(shown('a\nb\u0001')).toBe('a\\nb\\u0001')
})

test('formatting of descriptions stays, and code in an unknown language is shown', () => {
  const { html, title } = render({ title: 'A <b> & `c`', description: '- *one*\n- `two`\n\n```klingon\nnuqneH\n```' })
  expect(html).toContain('<li><em>one</em></li>\n<li><code>two</code></li>')
  expect(html).toContain('<pre tabindex="0" data-language="text"><code>nuqneH</code></pre>')
  expect(title).toBe('A <b> & `c`')
})
