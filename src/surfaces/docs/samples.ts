/** Reads the samples of the operations, as the reference shows them: docs/samples has one in each language. */
import { readFileSync } from 'node:fs'

/** The languages, in the order in which they are shown, with the extension of their files. */
export const sampleLanguages = { curl: 'sh', TypeScript: 'ts', Python: 'py' } as const

export type SampleLanguage = keyof typeof sampleLanguages

export interface Sample {
  lang: SampleLanguage
  source: string
}

export const samplesDirectory = new URL('../../../docs/samples/', import.meta.url)

/** The samples of the operation, one in each language. */
export function samplesOf(operationId: string): Sample[] {
  return Object.entries(sampleLanguages).map(([lang, extension]) => {
    const source = readFileSync(new URL(`${operationId}.${extension}`, samplesDirectory), 'utf8').trimEnd()
    return { lang: lang as SampleLanguage, source }
  })
}
