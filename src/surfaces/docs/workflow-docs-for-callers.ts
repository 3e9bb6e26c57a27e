/** The pages of an account's workflows on the Execution API's host, for callers with an API key. */
import type { RequestHandler } from 'express'
import { Problem } from '../../contract/problem.ts'
import type { WorkflowRegistry } from '../../domain/deployments/deployments.ts'
import { admitCaller, type CallerDependencies, refuse } from '../api-caller.ts'
import type { BuiltDocs } from './docs-handler.ts'
import { sendWorkflowDocs } from './workflow-pages.ts'

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
