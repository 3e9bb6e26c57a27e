/** Counts the words of a text file. */
import { readFile } from 'node:fs/promises'
import { defineWorkflow } from 'execution-service/workflow'
import { confinedPath } from './access/files.ts'

export default defineWorkflow({
  id: 'count-words',
  version: '1.0.0',
  title: 'Count the words of a text file',
  description: 'Counts the words of a file and returns the most frequent ones.',
  variables: {
    type: 'object',
    additionalProperties: false,
    required: ['path'],
    properties: {
      path: {
        type: 'string',
        minLength: 1,
        description: 'Path of the file, relative to the directory of the examples.',
        examples: ['README.md'],
      },
      top: {
        type: 'integer',
        minimum: 1,
        maximum: 100,
        default: 5,
        description: 'How many of the most frequent words to return.',
      },
    },
  },
  output: {
    type: 'object',
    additionalProperties: false,
    required: ['words', 'top'],
    properties: {
      words: { type: 'integer', description: 'Number of words.' },
      top: {
        type: 'array',
        description: 'The most frequent words, most frequent first.',
        items: {
          type: 'object',
          required: ['word', 'count'],
          properties: { word: { type: 'string' }, count: { type: 'integer' } },
        },
      },
    },
  },
  async run({ variables, log, progress, signal }) {
    const text = await readFile(await confinedPath(variables.path), { encoding: 'utf8', signal })
    log(`Read ${text.length} characters from ${variables.path}`)
    const words = text.toLowerCase().match(/\p{L}+/gu) ?? []
    const counts = new Map<string, number>()
    for (const word of words) counts.set(word, (counts.get(word) ?? 0) + 1)
    const top = [...counts].sort(([, a], [, b]) => b - a).slice(0, variables.top)
    progress(100, 'Counted')
    return { words: words.length, top: top.map(([word, count]) => ({ word, count })) }
  },
})
