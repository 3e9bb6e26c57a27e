/** Checks the spelling of what people read: British, with the words of the trade in words.txt. */
import { globSync, readFileSync } from 'node:fs'
import dictionary from 'dictionary-en-gb'
import nspell from 'nspell'
import { describePlace, walk } from '../../openapi/document.ts'
import type { CheckedContract, Finding, Report } from './finding.ts'

/** Text with the place that is told of it. */
export interface Prose {
  text: string
  where: string
}

const wordsPath = 'src/tools/contract-checks/words.txt'
export const ownWords: readonly string[] = readFileSync(new URL('words.txt', import.meta.url), 'utf8')
  .trim()
  .split('\n')

const proseMembers = ['title', 'summary', 'description', 'x-decision-reason']

export function proseOfDocument({ name, current }: Pick<CheckedContract, 'name' | 'current'>): Prose[] {
  return [...walk(current)].flatMap(({ value, path }) =>
    typeof value === 'string' && proseMembers.includes(String(path.at(-1)))
      ? [{ text: value, where: describePlace(name, current, path) }]
      : [],
  )
}

/** A line for each line of a Markdown file, without fenced code. */
export function proseOfMarkdown(path: string, text: string): Prose[] {
  let fenced = false
  return text.split('\n').flatMap((line, index) => {
    const fence = /^\s*(```|~~~)/.test(line)
    if (fence) fenced = !fenced
    return fence || fenced ? [] : [{ text: line, where: `${path}:${index + 1}` }]
  })
}

/** Words, without code, addresses, link targets and tags; those with a digit in them are names. */
export function wordsOf(text: string): string[] {
  const prose = text
    .replaceAll(/`[^`]*`/g, ' ')
    .replaceAll(/\]\([^)]*\)|<[^>]*>|&\w+;/g, ' ')
    .replaceAll(/\b\w+:\/\/\S+|\S*[/\\_@]\S*|\S+\.(?:md|ts|json|ya?ml|txt|html)\b/g, (found) =>
      /^[\p{L}’']+\/[\p{L}’']+$/u.test(found) ? found : ' ',
    )
  const words = prose.match(/[\p{L}\p{N}][\p{L}\p{N}’']*/gu) ?? []
  return words.filter((word) => !/\p{N}/u.test(word)).map((word) => word.replaceAll('’', "'").replace(/'s?$/, ''))
}

let speller: ReturnType<typeof nspell> | undefined

/** Reading the dictionary takes a quarter of a second. */
function spell(): ReturnType<typeof nspell> {
  speller ??= nspell(dictionary)
  return speller
}

function isOwn(word: string): boolean {
  return ownWords.includes(word) || ownWords.includes(word.toLowerCase())
}

export function checkSpelling(prose: readonly Prose[]): Report {
  const judged = new Map<string, boolean>()
  const findings = prose.flatMap(({ text, where }) =>
    wordsOf(text).flatMap((word): Finding[] => {
      const right = judged.get(word) ?? (isOwn(word) || spell().correct(word))
      judged.set(word, right)
      return right ? [] : [misspelt(word, where)]
    }),
  )
  return { looked: `${judged.size} words`, findings }
}

/** Where the word stands in the files that a document is bundled of; its pointer tells only the bundle's place. */
function linesOf(word: string, where: string): string {
  if (!where.startsWith('openapi/')) return ''
  const whole = new RegExp(`(?<!\\p{L})${word}(?!\\p{L})`, 'u')
  const lines = globSync('openapi/**/*.yaml').flatMap((file) => {
    const numbered = readFileSync(file, 'utf8').split('\n').entries()
    return [...numbered].filter(([, line]) => whole.test(line)).map(([index]) => `${file}:${index + 1}`)
  })
  return lines.length > 0 ? ` (${lines.join(', ')})` : ''
}

function misspelt(word: string, where: string): Finding {
  const [suggestion] = spell().suggest(word)
  return {
    severity: 'error',
    what: `“${word}” is not a word that the British dictionary knows.`,
    where: where + linesOf(word, where),
    why: 'The documents and guides are what people judge the service by.',
    mend: `Mend it${suggestion ? ` (“${suggestion}”?)` : ''}, put it between backquotes when it is code, or add it to ${wordsPath} when it is a word of the trade.`,
  }
}

/** Words of the list that no prose has any more, or that the dictionary knows: there they would hide mistakes. */
export function unusedWords(prose: readonly Prose[]): Finding[] {
  const used = new Set(prose.flatMap(({ text }) => wordsOf(text)).flatMap((word) => [word, word.toLowerCase()]))
  const unused = ownWords.filter((word) => !used.has(word) || spell().correct(word))
  return unused.map((word) => ({
    severity: 'error',
    what: `“${word}” is in the list of our own words, and ${used.has(word) ? 'in the dictionary too' : 'nowhere else'}.`,
    where: wordsPath,
    why: 'It would hide a mistake.',
    mend: 'Take it out.',
  }))
}
