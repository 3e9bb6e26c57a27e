import { createBrowserContextClient, unwrap } from 'execution-service-client'

const { API_KEY = '', BROWSER_CONTEXT_ID = '' } = process.env
const client = createBrowserContextClient({ baseUrl: 'http://127.0.0.1:3002', apiKey: API_KEY })

const path = { browserContextId: BROWSER_CONTEXT_ID }
const { data } = unwrap(
  await client.listBrowserContextVersions({ params: { path, query: { limit: 100 } } }),
)
for (const { version, createdAt, cookieDomains } of data)
  console.log(version, createdAt, cookieDomains.join(' '))
