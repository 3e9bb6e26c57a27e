/** The mock's API keys and default ports. */
import type { DocumentName } from '../openapi/document.ts'

/** The status of responses to each key: 200 stands for any success. Any other key gets 401. */
export const mockKeys = Object.entries({
  200: 'Valid, with all scopes.',
  403: 'Valid, without any scope.',
  429: 'Has exceeded its rate limit.',
  500: 'Causes an internal error.',
  503: 'Finds the database unavailable.',
}).map(([status, meaning]) => ({ value: `00000000-0000-4000-8000-000000000${status}`, status, meaning }))

export const validKey = '00000000-0000-4000-8000-000000000200'

export const mockPorts: Record<DocumentName, { variable: string; port: string }> = {
  'execution.v1': { variable: 'MOCK_EXECUTION_PORT', port: '4001' },
  'browser-context.alpha': { variable: 'MOCK_BROWSER_CONTEXT_PORT', port: '4002' },
}
