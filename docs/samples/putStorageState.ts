import { readFile } from 'node:fs/promises'
import { createBrowserContextClient, unwrap } from 'execution-service-client'

const { API_KEY = '', BROWSER_CONTEXT_ID = '' } = process.env
const client = createBrowserContextClient({ baseUrl: 'http://127.0.0.1:3002', apiKey: API_KEY })

// Written by Playwright's context.storageState({ path: 'state.json' }).
const state = JSON.parse(await readFile('state.json', 'utf8'))
const path = { browserContextId: BROWSER_CONTEXT_ID }
unwrap(await client.putStorageState({ params: { path }, body: state }))
console.log('Stored in', BROWSER_CONTEXT_ID)
