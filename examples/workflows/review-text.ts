/** Has a person review a text, and waits until its release: a call, an answer and a sleep, without a process meanwhile. */
import { defineWorkflow } from 'execution-service/workflow'

export default defineWorkflow({
  id: 'review-text',
  version: '1.0.0',
  title: 'Review a text before its release',
  description: 'Counts the words of a file, asks a person whether to release it, and waits until the release.',
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
      releaseInHours: {
        type: 'number',
        minimum: 0,
        maximum: 720,
        default: 24,
        description: 'Hours from the review to the release.',
      },
    },
  },
  output: {
    type: 'object',
    additionalProperties: false,
    required: ['released', 'words', 'note'],
    properties: {
      released: { type: 'boolean' },
      words: { type: 'integer', description: 'Number of words.' },
      note: { type: 'string', description: 'What the reviewer wrote.' },
    },
  },
  waits: {
    review: {
      title: 'Release this text?',
      description: 'The review of a text. Without one within a week, the text is not released.',
      schema: {
        type: 'object',
        additionalProperties: false,
        required: ['release'],
        properties: {
          release: { type: 'boolean', description: 'Whether to release the text.' },
          note: { type: 'string', maxLength: 500, default: '', description: 'For the author of the text.' },
        },
      },
    },
  },
  async run({ variables, call, waitFor, sleep, log }) {
    const { path, releaseInHours = 24 } = variables
    const { words } = await call<{ words: number }>('count', 'count-words', { path, top: 1 })
    const review = await waitFor('review', { title: `Release ${path}?`, show: { path, words } })
    if (!review.ok) return { released: false, words, note: 'No review came in time.' }
    const { release, note = '' } = review.value
    if (!release) return { released: false, words, note }
    await sleep('until release', { hours: releaseInHours })
    log(`Released ${path}`)
    return { released: true, words, note }
  },
})
