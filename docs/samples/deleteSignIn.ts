import { createBrowserContextClient, unwrap } from 'execution-service-client'

const { API_KEY = '', BROWSER_CONTEXT_ID = '' } = process.env
const client = createBrowserContextClient({ baseUrl: 'http://127.0.0.1:3002', apiKey: API_KEY })

unwrap(await client.deleteSignIn({ params: { path: { browserContextId: BROWSER_CONTEXT_ID } } }))
