/** Pages of workflows: of the examples in the public docs, and of an account's workflows for its users and keys. */
import { readFileSync } from 'node:fs'
import type { RequestHandler, Response } from 'express'
import { html } from 'hono/html'
import { Problem } from '../../contract/problem.ts'
import type { WorkflowRegistry } from '../../domain/deployments/deployments.ts'
import type { Workflow } from '../../domain/workflows/workflow.ts'
import type { Workflows } from '../../domain/workflows/workflows.ts'
import { workflowsDocument } from '../../domain/workflows/workflows-document.ts'
import { admitCaller, type CallerDependencies, refuse } from '../api-caller.ts'
import type { Contract } from './contracts.ts'
import { type BuiltDocs, setDocsHeaders } from './docs-handler.ts'
import type { Guide } from './guides.ts'
import { type Rendered, renderWorkflowPage } from './markdown.ts'
import { fillWorkflowPage, tableOfContents } from './page-layout.ts'
import { workflowSearchScript } from './search-index.ts'
import { workflowMarkdown } from './workflow-markdown.ts'
import { cell, plain, sentence } from './workflow-texts.ts'

const examplesFile = new URL('../../../generated/example-workflows.json', import.meta.url)

/** The workflows of `examples/`, as `npm run generate` describes them. */
export function readExamples([execution]: readonly Contract[]): Guide[] {
  const workflows: Workflow[] = JSON.parse(readFileSync(examplesFile, 'utf8'))
  return workflows.map((workflow) => {
    const markdown = workflowMarkdown(workflow, { executionUrl: execution?.shownUrl ?? '', root: '' })
    const name = `example-${workflow.id}`
    return { ...renderWorkflowPage(markdown), name, group: 'Example workflows', markdown }
  })
}

interface WorkflowDocs {
  docs: BuiltDocs
  /** Those that the viewer's account sees. */
  workflows: Workflows
  executionUrl: string
}

/**
 * Responds with a page of an account's workflows, in HTML or, with the extension `.md`, in Markdown; with `.json` alone,
 * with their OpenAPI document; with `.js` alone, with their search index.
 *
 * @param page the path after `/docs/workflows`.
 */
export async function sendWorkflowDocs(response: Response, page: string, docs: WorkflowDocs): Promise<void> {
  setDocsHeaders(response)
  // Other origins could otherwise load the search index as a script, with the cookies of a user.
  response.set({ 'Cache-Control': 'no-store', 'Cross-Origin-Resource-Policy': 'same-origin' })
  // Relative, because a proxy may serve the host under a prefix.
  if (page === '') return void response.redirect(308, 'workflows/')
  const list = docs.workflows.list()
  if (page === '.js') return void response.type('js').send(workflowSearchScript(list))
  if (page === '.json') {
    const { bytes } = workflowsDocument(docs.workflows, docs.executionUrl)
    return void response.type('json').end(bytes)
  }
  const found = findPage(page.slice(1), list, docs.executionUrl)
  const status = found ? 200 : 404
  const { markdown, name } = found ?? { markdown: notFound, name: undefined }
  if (page.endsWith('.md') && name !== page.slice(1)) {
    return void response.status(status).type('text/markdown').send(markdown)
  }
  const { workflowPageTemplate } = await docs.docs.get()
  response.status(status).type('html')
  response.send(await renderPage(workflowPageTemplate, name, renderWorkflowPage(markdown), list))
}

const notFound = `# Workflow not found

This account has no workflow with this id, or it was removed by a deployment. See [all workflows](./).
`

/** The id of a workflow may itself end with `.md`. */
function findPage(
  name: string,
  workflows: readonly Workflow[],
  executionUrl: string,
): { markdown: string; name: string } | undefined {
  const base = name.replace(/\.md$/, '')
  if (base === '' || name === 'index.md') return { markdown: listMarkdown(workflows, executionUrl), name: 'index' }
  const workflow = workflows.find(({ id }) => id === name) ?? workflows.find(({ id }) => id === base)
  return workflow && { markdown: workflowMarkdown(workflow, { executionUrl, root: '../' }), name: workflow.id }
}

function listMarkdown(workflows: readonly Workflow[], executionUrl: string): string {
  const rows = workflows.map(({ id, title, version, deprecated, description }) => {
    const text = [plain(title), deprecated ? '(deprecated)' : '', sentence(description ?? '')]
      .filter(Boolean)
      .join('. ')
    return `| [\`${id}\`](${id}) | ${cell(plain(version))} | ${cell(text)} |`
  })
  const list = ['| workflow | version | what it does |', '| --- | --- | --- |', ...rows].join('\n')
  return `# Your workflows

${rows.length === 0 ? 'No workflow is deployed for this account.' : 'The workflows that the API keys of this account can run.'}

${rows.length === 0 ? '' : list}

## For programs

[Download the OpenAPI document](../workflows.json) of these workflows. Programs get it with an API key from
\`${executionUrl}/v1/execution/openapi.json\` (\`getWorkflowsDocument\`). From it, the
[TypeScript client](../client.md#the-types-of-your-workflows) gets its types:

\`\`\`sh
API_KEY=… npx execution-service-client types --url ${executionUrl} --out workflows.ts
\`\`\`
`
}

async function renderPage(
  template: string,
  current: string | undefined,
  { html: article, title, summary, sections }: Rendered,
  workflows: readonly Workflow[],
): Promise<string> {
  const links = workflows.map(
    ({ id, title }) => html`<li><a href="${id}"${id === current ? html` aria-current="page"` : ''}>${title}</a></li>`,
  )
  return fillWorkflowPage(template, {
    title: String(await html`${title}`),
    summary: String(await html`${summary}`),
    workflows: String(await html`${links}`),
    contents: String(await html`${tableOfContents({ sections })}`),
    article,
    markdown: `${current ?? 'index'}.md`,
  })
}

// The pages of an account's workflows on the Execution API's host, for callers with an API key.

interface Dependencies extends CallerDependencies {
  checkHost: RequestHandler
  docs: BuiltDocs
  workflows: WorkflowRegistry
  addresses(): { dashboardUrl: string; executionUrl: string }
}

const root = '/docs/workflows'

/** Browsers, which send no key, are redirected to the same page of the dashboard. */
export function workflowDocsForCallers(dependencies: Dependencies): RequestHandler {
  const { checkHost, docs, workflows, addresses } = dependencies
  const serve: RequestHandler = async (request, response) => {
    if (request.method !== 'GET' && request.method !== 'HEAD')
      throw new Problem({ kind: 'method-not-allowed', detail: 'This path has GET.' }, { Allow: 'GET, HEAD' })
    const [path = ''] = request.originalUrl.split('?')
    const { dashboardUrl, executionUrl } = addresses()
    const isBrowser = request.headers.authorization === undefined && request.accepts(['text', 'html']) === 'html'
    if (isBrowser) return void response.redirect(302, dashboardUrl + path)
    const caller = await admitCaller(dependencies, request, response)
    if (!caller) return
    if (!caller.hasScopes(['workflows:read'])) return refuse(response, 403)
    const visible = workflows.current(caller.principal.accountId)
    await sendWorkflowDocs(response, path.slice(root.length), { docs, workflows: visible, executionUrl })
  }
  return (request, response, next) =>
    checkHost(request, response, (error?: unknown) =>
      error ? next(error) : Promise.resolve(serve(request, response, next)).catch(next),
    )
}
