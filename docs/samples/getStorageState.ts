import { writeFile } from 'node:fs/promises'
import { createBrowserContextClient, unwrap } from 'execution-service-client'

const { API_KEY = '', BROWSER_CONTEXT_ID = '' } = process.env
const client = createBrowserContextClient({ baseUrl: 'http://127.0.0.1:3002', apiKey: API_KEY })

const path = { browserContextId: BROWSER_CONTEXT_ID }
const state = unwrap(await client.getStorageState({ params: { path } }))
// Protect this file like a password: it contains the sessions of the browser context.
await writeFile('state.json', JSON.stringify(state))
console.log('Wrote state.json')
