import OpenAI from 'openai'
import { use, withServer } from '../lib/use.mjs'

export default use('openai', 'asks a local server for a completion', 'Hello', () =>
  withServer('{"choices":[{"message":{"content":"Hello"}}]}', async (baseURL) => {
    const client = new OpenAI({ apiKey: 'key', baseURL })
    const prompt = { role: /** @type {const} */ ('user'), content: 'Greet' }
    return (await client.chat.completions.create({ model: 'any', messages: [prompt] })).choices[0].message.content
  }),
)
