/** Reads a text file and counts its words: the smallest workflow that does something real. */
import { readFile } from 'node:fs/promises'
import { defineWorkflow } from 'execution-service/workflow'

export default defineWorkflow({
  id: 'count-words',
  version: '1.0.0',
  title: 'Count the words of a text file',
  description: 'Counts all words of a file and lists the most frequent ones.',
  variables: {
    type: 'object',
    additionalProperties: false,
    required: ['path'],
    properties: {
      path: {
        type: 'string',
        minLength: 1,
        description: "The file, from the worker's working directory.",
        examples: ['README.md'],
      },
      top: { type: 'integer', minimum: 1, maximum: 100, default: 5, description: 'How many words to list.' },
    },
  },
  output: {
    type: 'object',
    additionalProperties: false,
    required: ['words', 'top'],
    properties: {
      words: { type: 'integer', description: 'How many words there are.' },
      top: {
        type: 'array',
        description: 'The most frequent words, the first of them most often.',
        items: {
          type: 'object',
          required: ['word', 'count'],
          properties: { word: { type: 'string' }, count: { type: 'integer' } },
        },
      },
    },
  },
  async run({ variables, log, progress, signal }) {
    const text = await readFile(variables.path, { encoding: 'utf8', signal })
    log(`Read ${text.length} characters from ${variables.path}`)
    const words = text.toLowerCase().match(/\p{L}+/gu) ?? []
    const counts = new Map<string, number>()
    for (const word of words) counts.set(word, (counts.get(word) ?? 0) + 1)
    const top = [...counts].sort(([, a], [, b]) => b - a).slice(0, variables.top)
    progress(100, 'Counted')
    return { words: words.length, top: top.map(([word, count]) => ({ word, count })) }
  },
})
