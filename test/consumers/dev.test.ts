/** `npm run dev`: the service as its developers run it, on a copy of this checkout. */
import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Dev, startDev } from '../support/dev.ts'
import { until } from '../support/service.ts'

let dev: Dev
beforeAll(async () => {
  dev = await startDev()
})
afterAll(() => dev?.end())

const problems = 'src/contract/problem.ts'
const execution = 'openapi/execution.v1.yaml'

/** On a connection of its own: one that is kept open stays with the version that accepted it. */
const get = (path: string) => fetch(dev.executionUrl() + path, { headers: { Connection: 'close' } })
const titleOfNowhere = async () => ((await (await get('/nowhere')).json()) as { title: string }).title
/** As soon as it is served; between two versions a connection may be refused. */
const untilTitle = (title: string) =>
  until(`"${title}" is served`, async () => (await titleOfNowhere().catch(() => '')) === title)
const isDocumented = async (path: string) => (await get(path)).status === 401

/** A line that names the file among those that were saved. */
const reloaded = (file: string) => new RegExp(`^Reloaded [^:]*: (.*, )?${file}(,|$)`)

/** In code that is loaded: whether a version is the first to do so, in order to serve and not to warm up. */
const isFirst = (mark: string) =>
  [
    "process.argv[1].endsWith('version-process.ts')",
    "!import.meta.url.endsWith('?before')",
    `!existsSync('data/${mark}')`,
  ].join(' && ')

let rests = 0

/** Resolves when dev has told of everything that was saved. The file is the first of any list. */
async function rest(): Promise<void> {
  rests += 1
  const file = 'docs/guides/0.txt'
  await dev.waitForLine(() => dev.write(file, `${rests}`), reloaded(file))
}

describe('a saved file', () => {
  test('is served on the same ports, and dev says which it was and how long it took', async () => {
    const before = dev.executionUrl()
    const line = await dev.waitForLine(() => dev.replace(problems, "'Not found'", "'Not here'"), /eloaded/)
    expect(line).toMatch(/^Reloaded in \d+\.\d\d s: src\/contract\/problem\.ts$/)
    expect(await titleOfNowhere()).toBe('Not here')
    expect(dev.executionUrl()).toBe(before)
  })

  test('is noticed when an editor puts another file in its place, again and again', async () => {
    for (const title of ['Not this time', 'Not that time']) {
      const save = () => {
        // Beside the file, and in two steps, so that dev may tell of this one by itself.
        const text = dev.read(problems).replace(/'Not (here|this time)'/, `'${title}'`)
        writeFileSync(join(dev.directory, `${problems}~`), text)
        renameSync(join(dev.directory, `${problems}~`), join(dev.directory, problems))
      }
      await dev.waitForLine(save, reloaded(problems))
      expect(await titleOfNowhere()).toBe(title)
    }
  })

  test('that is the same as before changes nothing', async () => {
    const line = await dev.waitForLine(() => {
      dev.write(problems, dev.read(problems))
      dev.write(
        'examples/workflows/another.ts',
        dev.read('examples/workflows/count-words.ts').replace("'count-words'", "'another'"),
      )
    }, /eloaded/)
    expect(line).toMatch(/: examples\/workflows\/another\.ts$/)
  })

  test('is served as it is also when it was another one only while a version loaded it', async () => {
    const word = 'docs/guides/word.txt'
    // The first version that loads it finds what somebody saves just then, and undoes before dev looks.
    const title = `(() => {
      if (${isFirst('undone')}) {
        writeFileSync('data/undone', '')
        writeFileSync('${word}', 'Not for long')
        setImmediate(() => writeFileSync('${word}', 'Not any more'))
      }
      return readFileSync('${word}', 'utf8')
    })()`
    const imports = "import { existsSync, readFileSync, writeFileSync } from 'node:fs'\n"
    const before = dev.read(problems)
    dev.write(word, 'Not any more')
    dev.write(problems, imports + before.replace("'Not that time'", title))
    await untilTitle('Not any more')
    await rest()
    await dev.waitForLine(() => dev.write(problems, before), reloaded(problems))
  })

  test('costs no caller an answer', async () => {
    const statuses = new Set<number>()
    let isOver = false
    const calling = (async () => {
      while (!isOver) statuses.add((await get('/nowhere')).status)
    })()
    await dev.waitForLine(() => dev.replace(problems, "'Not that time'", "'Not found'"), reloaded(problems))
    isOver = true
    await calling
    expect([...statuses]).toEqual([404])
  })
})

describe('a saved document', () => {
  test('is served, and generated/ is as `npm run generate` makes it', async () => {
    const rename = () => dev.replace(execution, '/v1/execution/workflows:', '/v1/execution/flows:')
    await dev.waitForLine(rename, /^Reloaded .*openapi\/execution\.v1\.yaml/)
    expect(await isDocumented('/v1/execution/flows')).toBe(true)
    for (const file of ['document.json', 'types.ts', 'server.ts', 'client.ts']) {
      expect(dev.read(`generated/execution.v1/${file}`)).toContain('/v1/execution/flows')
    }
  })

  test('of which only a comment changed is not served anew', async () => {
    const line = await dev.waitForLine(() => dev.write(execution, `# A remark.\n${dev.read(execution)}`), /yaml/)
    expect(line).toBe('openapi/execution.v1.yaml: nothing changes.')
  })
})

describe('what cannot be served', () => {
  const mistakes = [
    {
      what: 'a syntax error',
      file: problems,
      from: 'export class Problem',
      to: 'export klass Problem',
      sentence: /^Not reloaded\. src\/contract\/problem\.ts:\d+: SyntaxError: .+$/,
    },
    {
      what: 'a document that is none',
      file: execution,
      from: 'operationId: getRun\n',
      to: 'operationID: getRun\n',
      sentence:
        /^Not reloaded\. openapi\/execution\.v1\.yaml:\d+: Property `operationID` is not expected here\. Did you mean `operationId`\?$/,
    },
    {
      what: 'YAML that cannot be read',
      file: 'openapi/shared/headers.yaml',
      from: 'XRequestId:',
      to: 'XRequestId: ]',
      sentence: /^Not reloaded\. openapi\/shared\/headers\.yaml:\d+: .+$/,
    },
    {
      what: 'an operation without a handler',
      file: execution,
      from: 'operationId: getRun\n',
      to: 'operationId: readRun\n',
      sentence: /^Not reloaded\. .*The operation readRun has no handler\.$/,
    },
    {
      what: 'a workflow that does not load',
      file: 'examples/workflows/another.ts',
      from: 'export default',
      to: 'export',
      sentence: /^Not reloaded\. examples\/workflows\/another\.ts failed to load: .+$/,
    },
  ]

  test.each(mistakes)(
    '$what: the version before serves on until it is mended',
    async ({ file, from, to, sentence }) => {
      expect(await dev.waitForLine(() => dev.replace(file, from, to), /eloaded/)).toMatch(sentence)
      expect(await isDocumented('/v1/execution/flows')).toBe(true)
      await dev.waitForLine(() => dev.replace(file, to, from), /^Reloaded/)
      expect(await isDocumented('/v1/execution/flows')).toBe(true)
    },
  )
})

/** The processes of dev that run this module of it, the eldest first. */
function pidsOf(module: string): number[] {
  const lines = execFileSync('ps', ['-A', '-o', 'pid=,ppid=,args='], { encoding: 'utf8' }).split('\n')
  const rows = lines.map((line) => /^ *(\d+) +(\d+) +(.*)$/.exec(line) ?? [])
  const ours = rows.filter(([, , parent, args]) => Number(parent) === dev.child.pid && args?.endsWith(module))
  const pids = ours.map(([, pid]) => Number(pid))
  const starts = new Map(pids.map((pid) => [pid, startOf(pid)]))
  return pids.sort((one, other) => (starts.get(one) ?? 0) - (starts.get(other) ?? 0))
}

/** When the process was started; the pids of later ones may be lower. See proc(5). */
function startOf(pid: number): number {
  try {
    // The name, which is in parentheses, may have anything in it.
    const [, rest = ''] = readFileSync(`/proc/${pid}/stat`, 'utf8').split(/\) (?!.*\) )/s)
    return Number(rest.split(' ')[19])
  } catch {
    return Number.POSITIVE_INFINITY
  }
}

describe('a process that dies or hangs', () => {
  test('a generator that was killed is replaced at the next change of a document', async () => {
    for (const pid of pidsOf('generator-process.ts')) process.kill(pid, 'SIGKILL')
    await until('it is gone', () => pidsOf('generator-process.ts').length === 0)
    const title = dev.read(execution).match(/title: .*/)?.[0] ?? ''
    await dev.waitForLine(() => dev.replace(execution, title, `${title} anew`), /^Reloaded .*execution\.v1\.yaml/)
  })

  test('a version that neither serves nor ends is ended, and the mended file is served', async () => {
    const config = 'src/config.ts'
    const { lines: said } = dev
    const refused = await dev.waitForLine(
      () => dev.write(config, `${dev.read(config)}while (true);\n`),
      /^Not reloaded/,
    )
    expect(refused).toMatch(/has not started within \d+ s, and was ended\.$/)
    expect(await titleOfNowhere()).toBe('Not found')
    const from = said.length
    await dev.waitForLine(() => dev.replace(config, 'while (true);\n', '// Mended.\n'), /^Reloaded/)
    expect(said.slice(from).filter((line) => line.startsWith('Not reloaded'))).toEqual([])
  })

  test('a version that dies as soon as it is asked to serve is replaced by another', async () => {
    const dying = `import { existsSync, writeFileSync } from 'node:fs'
      if (${isFirst('died')}) {
        writeFileSync('data/died', '')
        process.kill(process.pid, 'SIGKILL')
      }
    `
    const before = dev.read(problems)
    const save = () => dev.write(problems, dying + before)
    expect(await dev.waitForLine(save, /eloaded/)).toMatch(reloaded(problems))
    await dev.waitForLine(() => dev.write(problems, before), reloaded(problems))
  })

  test('a folder that is removed and made again at once is still watched', async () => {
    const folder = join(dev.directory, 'src/contract')
    cpSync(folder, `${folder}.kept`, { recursive: true })
    rmSync(folder, { recursive: true })
    cpSync(`${folder}.kept`, folder, { recursive: true })
    rmSync(`${folder}.kept`, { recursive: true })
    dev.replace(problems, "'Not found'", "'Not once'")
    await untilTitle('Not once')
    dev.replace(problems, "'Not once'", "'Not found'")
    await untilTitle('Not found')
    await rest()
  })

  test('a serving version that is killed while its successor starts does not hold dev up', async () => {
    await until('the versions before have ended', () => pidsOf('version-process.ts').length === 2)
    await dev.waitForLine(() => {
      const [serving] = pidsOf('version-process.ts')
      dev.replace(problems, "'Not found'", "'Not now'")
      process.kill(serving as number, 'SIGKILL')
    }, reloaded(problems))
    await dev.waitForLine(() => dev.replace(problems, "'Not now'", "'Not found'"), reloaded(problems))
  })
})

describe('the end', () => {
  test('that Ctrl-C asks for leaves no process behind', async () => {
    // The terminal sends it to all of them.
    process.kill(-(dev.child.pid as number), 'SIGINT')
    expect(await once(dev.child, 'exit')).toEqual([0, null])
    await until('no process is left', () => !dev.anyAlive())
  })

  test('by force leaves none behind either', async () => {
    const other = await startDev()
    other.child.kill('SIGKILL')
    await until('no process is left', () => !other.anyAlive())
    await other.end()
  })
})
