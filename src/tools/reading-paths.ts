/**
 * Writes the reading paths of docs/architecture.md from the calls of the code: each path follows the shortest chain of
 * calls from one function to another. `npm run generate:paths` updates the document.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import ts from 'typescript'

const root = fileURLToPath(new URL('../../', import.meta.url))
export const documentPath = `${root}docs/architecture.md`

/**
 * A function as `file#name`, with the file below `src/`. Each chain begins where data leads: a list of operations, a
 * message to a process, or a statement of the store that was chosen.
 */
type Chain = readonly [from: string, ...to: string[]]

interface ReadingPath {
  /** Names the path in the document. */
  name: string
  filesMax: number
  chains: readonly Chain[]
}

const insertRuns = ['storage/runs/sqlite-run-statements.ts#insertRuns'] as const

export const readingPaths: readonly ReadingPath[] = [
  {
    name: 'request',
    filesMax: 8,
    chains: [
      ['surfaces/execution-api.ts#executionApi'],
      ['contract/stages.ts#serveOperation'],
      ['domain/run-api/queue-operations.ts#queueRemoteRun', 'domain/queue/enqueue-batcher.ts#insertRuns'],
      insertRuns,
    ],
  },
  {
    name: 'attempt',
    filesMax: 15,
    chains: [
      ['worker/worker.ts##claim', 'domain/queue/claim.ts#claim'],
      ['worker/worker.ts##execute', 'worker/executors/worker-deployments.ts#acquire'],
      ['worker/worker.ts##execute', 'worker/executors/executor-process.ts#start'],
      ['worker/executors/executor.ts#execute', 'worker/executors/execute-workflow.ts#executeWorkflow'],
      ['worker/executors/executor.ts#execute', 'worker/executors/run-context.ts#context'],
      ['worker/attempt/attempt.ts##onEvent', 'worker/attempt/reporter.ts#add'],
      ['worker/attempt/attempt.ts##complete', 'domain/runs/run-state.ts#nextState'],
      ['storage/runs/run-statements.ts#module'],
    ],
  },
  {
    name: 'schedule',
    filesMax: 8,
    chains: [
      ['maintenance/maintenance.ts#once', 'domain/schedules/schedule-times.ts#divideDueTimes'],
      ['domain/schedules/scheduler.ts#once', 'domain/queue/enqueue-batcher.ts#insertRuns'],
      insertRuns,
    ],
  },
]

/** The document with its paths as they are now. */
export function withReadingPaths(document: string): string {
  const graph = readCalls()
  return readingPaths.reduce((text, { name, chains }) => {
    const files = new Map<string, Set<string>>()
    for (const [from, ...waypoints] of chains) {
      let at = from
      note(files, at)
      for (const to of waypoints) {
        for (const call of findChain(graph, at, to)) note(files, call)
        at = to
      }
    }
    const lines = [...files].map(([file, names], index) => `${index + 1}. ${describe(file, [...names])}`)
    const section = new RegExp(`(<!-- path: ${name} -->\n)[\\s\\S]*?(<!-- end -->)`)
    if (!section.test(text)) throw new Error(`docs/architecture.md has no place for the path "${name}".`)
    return text.replace(section, (_, start: string, end: string) => `${start}${lines.join('\n')}\n${end}`)
  }, document)
}

function note(files: Map<string, Set<string>>, call: string): void {
  const [file = '', name = ''] = call.split(/#(.*)/)
  files.set(file, (files.get(file) ?? new Set()).add(name))
}

/** The file, its functions on the path, and the first sentence of its comment. */
function describe(file: string, names: readonly string[]): string {
  const [, comment = ''] = /^\/\*\*([\s\S]*?)\*\//.exec(readFileSync(`${root}src/${file}`, 'utf8')) ?? []
  const [sentence = ''] = comment
    .replaceAll(/\s*\n \* ?|\s+/g, ' ')
    .trim()
    .split(/(?<=\.)\s|:\s/)
  const shown = names.filter((name) => !['module', 'constructor'].includes(name)).map((name) => `\`${name}\``)
  return [`\`src/${file}\``, ...shown].join(' ').concat(`: ${sentence.replace(/[.:]$/, '')}`)
}

type Calls = ReadonlyMap<string, ReadonlySet<string>>

/** The functions that each function calls, also in what it passes on. */
function readCalls(): Calls {
  const { options, fileNames } = ts.parseJsonConfigFileContent(
    ts.readConfigFile(`${root}tsconfig.json`, ts.sys.readFile).config,
    ts.sys,
    root,
  )
  const isSource = (file: string) => file.startsWith(`${root}src/`) && !file.startsWith(`${root}src/tools/`)
  const program = ts.createProgram(fileNames.filter(isSource), options)
  const checker = program.getTypeChecker()
  const calls = new Map<string, Set<string>>()
  const visit = (node: ts.Node, owner: string) => {
    const current = (isFunction(node) && nameOf(node)) || owner
    if (ts.isCallExpression(node) || ts.isNewExpression(node)) {
      let called: ts.Node | undefined = checker.getResolvedSignature(node)?.declaration
      while (called && !nameOf(called)) called = called.parent
      if (called && isSource(called.getSourceFile().fileName)) {
        calls.set(current, (calls.get(current) ?? new Set()).add(nameOf(called) ?? ''))
      }
    }
    ts.forEachChild(node, (child) => visit(child, current))
  }
  for (const file of program.getSourceFiles()) {
    if (isSource(file.fileName)) visit(file, `${relative(`${root}src`, file.fileName)}#module`)
  }
  return calls
}

function isFunction(node: ts.Node): boolean {
  // Functions inside a function belong to it.
  if (ts.isVariableDeclaration(node)) return ts.isSourceFile(node.parent.parent.parent)
  return ts.isFunctionDeclaration(node) || ts.isMethodDeclaration(node) || ts.isConstructorDeclaration(node)
}

function nameOf(node: ts.Node): string | undefined {
  const { name } = node as { name?: ts.Node }
  const text = ts.isConstructorDeclaration(node) ? 'constructor' : name?.getText()
  return text && `${relative(`${root}src`, node.getSourceFile().fileName)}#${text}`
}

/** The shortest chain of calls. @throws {Error} if there is none. */
function findChain(calls: Calls, from: string, to: string): string[] {
  const callers = new Map<string, string | undefined>([[from, undefined]])
  for (const [caller] of callers) {
    for (const called of calls.get(caller) ?? []) if (!callers.has(called)) callers.set(called, caller)
  }
  if (!callers.has(to)) throw new Error(`${from} does not lead to ${to}.`)
  const chain: string[] = []
  for (let at: string | undefined = to; at !== undefined; at = callers.get(at)) chain.unshift(at)
  return chain
}

if (import.meta.main) writeFileSync(documentPath, withReadingPaths(readFileSync(documentPath, 'utf8')))
