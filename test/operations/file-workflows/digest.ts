/** Describes the files that it gets, and shows their paths wherever a workflow can. */
import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { stat } from 'node:fs/promises'
import { basename } from 'node:path'
import { defineWorkflow } from 'execution-service/workflow'

export default defineWorkflow({
  id: 'digest',
  version: '1.0.0',
  title: 'Describe files',
  variables: {
    type: 'object',
    required: ['document'],
    additionalProperties: false,
    properties: {
      document: { type: 'string', format: 'file' },
      pages: { type: 'array', items: { type: 'object', properties: { scan: { type: 'string', format: 'file' } } } },
      other: {
        anyOf: [
          { type: 'string', format: 'file' },
          { type: 'string', format: 'uri' },
        ],
      },
      hidden: { type: 'string', format: 'file', writeOnly: true },
      calls: { type: 'boolean' },
      fails: { type: 'boolean' },
    },
  },
  output: { type: 'object' },
  async run({ variables, log, call }) {
    const { document, pages = [], hidden, other, calls, fails } = variables
    log(`Reading ${document}`)
    if (fails) throw new Error(`Cannot read ${document}`)
    const paths = [document, ...pages.flatMap(({ scan }) => scan ?? []), ...(hidden ? [hidden] : [])]
    const described: unknown[] = []
    for (const path of paths) {
      const hash = createHash('sha256')
      for await (const chunk of createReadStream(path)) hash.update(chunk)
      described.push({ name: basename(path), bytes: (await stat(path)).size, sha256: hash.digest('hex') })
    }
    const called = calls ? await call('again', 'digest', { document }) : undefined
    return { files: described, document, ...(other && { other }), ...(called !== undefined && { called }) }
  },
})
