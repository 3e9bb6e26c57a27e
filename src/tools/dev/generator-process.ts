/** Writes generated/ whenever its parent asks, and ends with it. */
import { DocumentError } from '../generate/bundle.ts'
import { generate } from '../generate/generate.ts'
import type { Generated } from './generator.ts'
import { sentenceOf } from './sentence.ts'

async function generated(): Promise<Generated> {
  try {
    return { written: await generate() }
  } catch (error) {
    return { refused: error instanceof DocumentError ? error.message : sentenceOf(error) }
  }
}

process.on('message', async () => process.send?.(await generated()))
