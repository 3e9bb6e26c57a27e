import { defineWorkflow } from 'execution-service/workflow'
import { fetchPublic } from './access/addresses.ts'

export default defineWorkflow({
  id: 'page-title',
  version: '1.0.0',
  title: 'Read the title of a page',
  description: 'Fetches a page and returns the text of its title.',
  variables: {
    type: 'object',
    required: ['url'],
    properties: { url: { type: 'string', format: 'uri', description: 'Address of the page.' } },
  },
  output: { type: 'object', required: ['title'], properties: { title: { type: 'string' } } },
  retry: { maxAttempts: 3 },
  async run({ variables, step, signal }) {
    const html = await step('fetch', async () => (await fetchPublic(variables.url, { signal })).text())
    return { title: /<title>(.*?)<\/title>/.exec(html)?.[1] ?? '' }
  },
})
