/** Reads a guide as a person follows it: what goes into which file, and what is run and answered. */

export type Step =
  | { kind: 'create'; file: string; text: string }
  | { kind: 'append'; file: string; text: string }
  | {
      kind: 'insert'
      file: string
      text: string
      side: 'above' | 'below' | 'in place of'
      line: string
      after?: string
    }
  | { kind: 'run'; command: string; answer: string }

export interface Section {
  title: string
  steps: Step[]
}

/** The paragraph before a block says where the block goes; the last such words count. */
const places: [RegExp, (found: string[], text: string) => Step][] = [
  [/A new file `([^`]+)`/, ([file = ''], text) => ({ kind: 'create', file, text })],
  [/[Aa]t the end of `([^`]+)`/, ([file = ''], text) => ({ kind: 'append', file, text })],
  [
    /In `([^`]+)`, below the first `([^`]+)` after `([^`]+)`/,
    ([file = '', line = '', after = ''], text) => ({ kind: 'insert', file, text, side: 'below', line, after }),
  ],
  [
    /In `([^`]+)`, (above|below|in place of) `([^`]+)`/,
    ([file = '', side, line = ''], text) => ({ kind: 'insert', file, text, side: side as 'above', line }),
  ],
]

/** The sections in which there is something to do. */
export function readWalk(markdown: string): Section[] {
  const [, ...sections] = markdown.split(/^## /m)
  return sections
    .filter((section) => section.includes('```'))
    .map((section) => {
      const steps: Step[] = []
      let rest = section
      for (;;) {
        const block = /^```(\w+)\n(.*?)^```$/ms.exec(rest)
        if (!block) return { title: section.split('\n')[0] ?? '', steps }
        const [whole, language, text = ''] = block
        steps.push(...(language === 'console' ? runs(text) : [placed(rest.slice(0, block.index), text)]))
        rest = rest.slice(block.index + whole.length)
      }
    })
}

function placed(prose: string, text: string): Step {
  const paragraph = prose.trimEnd().split('\n\n').at(-1)?.replaceAll('\n', ' ') ?? ''
  for (const [pattern, step] of places) {
    const found = pattern.exec(paragraph)
    if (found) return step(found.slice(1), text)
  }
  throw new Error(`Nothing says where this block goes: ${paragraph}\n${text}`)
}

function runs(text: string): Step[] {
  return text
    .split(/^\$ /m)
    .filter((part) => part !== '')
    .map((part) => {
      const [command = '', ...answer] = part.split('\n')
      return { kind: 'run', command, answer: answer.join('\n').trim() }
    })
}

/** The lines of `text` with the block put in its place; throws when that is not one place. */
export function inserted(
  text: string,
  { side, line, after, text: block, file }: Extract<Step, { kind: 'insert' }>,
): string {
  const lines = text.split('\n')
  const isLine = (wanted: string) => (each: string) => each.trim() === wanted.trim()
  const from = after === undefined ? 0 : lines.findIndex(isLine(after))
  const found = lines.flatMap((each, index) => (index >= from && isLine(line)(each) ? [index] : []))
  const [at] = found
  if (from < 0 || at === undefined || (after === undefined && found.length > 1)) {
    throw new Error(`${file} has this line ${found.length} times: ${line}`)
  }
  lines.splice(side === 'below' ? at + 1 : at, side === 'in place of' ? 1 : 0, ...block.replace(/\n$/, '').split('\n'))
  return lines.join('\n')
}

/** A pattern of the answer, in which `…` is anything. */
export function patternOf(answer: string): RegExp {
  return new RegExp(`^${answer.split('…').map(escaped).join('[^]*?')}$`)
}

function escaped(text: string): string {
  return text.replaceAll(/[\\^$.*+?()[\]{}|]/g, '\\$&')
}
