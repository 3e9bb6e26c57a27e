/** Pages of workflows: of the examples in the public docs, and of an account's workflows for its users and keys. */
import { readFileSync } from 'node:fs'
import type { RequestHandler, Response } from 'express'
import { html } from 'hono/html'
import type { Exchange } from '../../contract/exchange.ts'
import { Problem } from '../../contract/problem.ts'
import { sendRepresentation } from '../../contract/representations.ts'
import type { TenantRequest } from '../../contract/tenant-limits.ts'
import type { WorkflowRegistry } from '../../domain/deployments/deployments.ts'
import type { Workflow } from '../../domain/workflows/workflow.ts'
import type { Workflows } from '../../domain/workflows/workflows.ts'
import { representations, workflowsDocument } from '../../domain/workflows/workflows-document.ts'
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
  /** The workflows of the viewer's account and of the installation. */
  workflows: Workflows
  executionUrl: string
  tenant: TenantRequest | undefined
}

/**
 * Responds with a page of an account's workflows, in HTML or, with the extension `.md`, in Markdown; with `.json` alone,
 * with their OpenAPI document; with `.js` alone, with their search index.
 *
 * @param page the path after `/docs/workflows`.
 */
export async function sendWorkflowDocs(
  response: Response,
  page: string,
  { docs, workflows, executionUrl, tenant }: WorkflowDocs,
): Promise<void> {
  setDocsHeaders(response)
  // Other origins could otherwise load the search index as a script, with the cookies of a user.
  response.set({ 'Cache-Control': 'no-store', 'Cross-Origin-Resource-Policy': 'same-origin' })
  // Relative, because a proxy may serve the host under a prefix.
  if (page === '') return void response.redirect(308, 'workflows/')
  const list = workflows.list()
  /** @param name of a page that exists: others must not be kept. */
  const send = async (type: string, name: string, make: () => string | Promise<string>) => {
    const made = await representations.get(workflows, `${type} ${name} ${executionUrl}`, tenant, make)
    await sendRepresentation(response.type(type), made, tenant)
  }
  if (page === '.js') return send('js', '', () => workflowSearchScript(list))
  if (page === '.json')
    return sendRepresentation(response.type('json'), workflowsDocument(workflows, executionUrl), tenant)
  const found = findPage(page.slice(1), workflows)
  const name = found === 'list' ? 'index' : found?.id
  const { workflowPageTemplate } = await docs.get()
  const render = (markdown: string) => renderPage(workflowPageTemplate, name, renderWorkflowPage(markdown), list)
  const isMarkdown = page.endsWith('.md') && name !== page.slice(1)
  if (!found) {
    response.status(404).type(isMarkdown ? 'text/markdown' : 'html')
    return void response.send(isMarkdown ? notFound : await render(notFound))
  }
  const markdown = () =>
    found === 'list' ? listMarkdown(list, executionUrl) : workflowMarkdown(found, { executionUrl, root: '../' })
  const key = found === 'list' ? '' : found.id
  if (isMarkdown) await send('text/markdown', key, markdown)
  else await send('html', key, () => render(markdown()))
}

const notFound = `# Workflow not found

This account has no workflow with this id, or it was removed by a deployment. See [all workflows](./).
`

/** The id of a workflow may itself end with `.md`. */
function findPage(name: string, workflows: Workflows): Workflow | 'list' | undefined {
  const base = name.replace(/\.md$/, '')
  if (base === '' || name === 'index.md') return 'list'
  return workflows.get(name) ?? workflows.get(base)
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
    const { tenant } = response.locals.exchange as Exchange
    await sendWorkflowDocs(response, path.slice(root.length), { docs, workflows: visible, executionUrl, tenant })
  }
  return (request, response, next) =>
    checkHost(request, response, (error?: unknown) =>
      error ? next(error) : Promise.resolve(serve(request, response, next)).catch(next),
    )
}
