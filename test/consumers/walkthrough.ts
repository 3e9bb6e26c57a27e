/** Parses a walkthrough: which block goes into which file, and which commands print what. */

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
  | { kind: 'run'; command: string; output: string }

export interface Section {
  title: string
  steps: Step[]
}

/** The paragraph before a block says where it goes. */
const locations: [RegExp, (found: string[], text: string) => Step][] = [
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

/** The sections with blocks. */
export function readWalkthrough(markdown: string): Section[] {
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
        steps.push(...(language === 'console' ? commandSteps(text) : [editStep(rest.slice(0, block.index), text)]))
        rest = rest.slice(block.index + whole.length)
      }
    })
}

function editStep(prose: string, text: string): Step {
  const paragraph = prose.trimEnd().split('\n\n').at(-1)?.replaceAll('\n', ' ') ?? ''
  for (const [pattern, step] of locations) {
    const match = pattern.exec(paragraph)
    if (match) return step(match.slice(1), text)
  }
  throw new Error(`No location for this block: ${paragraph}\n${text}`)
}

function commandSteps(text: string): Step[] {
  return text
    .split(/^\$ /m)
    .filter((part) => part !== '')
    .map((part) => {
      const [command = '', ...output] = part.split('\n')
      return { kind: 'run', command, output: output.join('\n').trim() }
    })
}

/** Inserts the block into `text`. Throws unless its location is unique. */
export function insertBlock(
  text: string,
  { side, line, after, text: block, file }: Extract<Step, { kind: 'insert' }>,
): string {
  const lines = text.split('\n')
  const isLine = (wanted: string) => (each: string) => each.trim() === wanted.trim()
  const from = after === undefined ? 0 : lines.findIndex(isLine(after))
  const matches = lines.flatMap((each, index) => (index >= from && isLine(line)(each) ? [index] : []))
  // `paths:` is the one that is not indented.
  const exact = matches.filter((index) => lines[index] === line)
  const indexes = exact.length === 1 ? exact : matches
  const [lineIndex] = indexes
  if (from < 0 || lineIndex === undefined || (after === undefined && indexes.length > 1)) {
    throw new Error(`${file} has this line ${indexes.length} times: ${line}`)
  }
  lines.splice(
    side === 'below' ? lineIndex + 1 : lineIndex,
    side === 'in place of' ? 1 : 0,
    ...block.replace(/\n$/, '').split('\n'),
  )
  return lines.join('\n')
}

/** A pattern of the output, in which `…` matches anything. */
export function outputPattern(output: string): RegExp {
  return new RegExp(`^${output.split('…').map(escapeRegExp).join('[^]*?')}$`)
}

function escapeRegExp(text: string): string {
  return text.replaceAll(/[\\^$.*+?()[\]{}|]/g, '\\$&')
}
