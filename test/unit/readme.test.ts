/** The README and the documents of docs/ agree with the code: settings, commands, paths, and the workflow shown first. */
import { existsSync, globSync, readFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { expect, test } from 'vitest'
import packageJson from '../../package.json' with { type: 'json' }
import { settings } from '../../src/config/config.ts'
import { readingPaths } from '../../src/tools/reading-paths.ts'

const documents = ['README.md', 'examples/README.md', ...globSync('docs/*.md'), ...globSync('docs/guides/*.md')]
const read = (path: string) => readFileSync(path, 'utf8')

test('docs/configuration.md lists every setting with its default', () => {
  const rows = Object.entries(settings).map(([name, { default: value, description }]) => {
    return `| \`${name}\` | ${value === undefined ? '' : `\`${value}\``} | ${description} |`
  })
  const table = ['| variable | default | meaning |', '| --- | --- | --- |', ...rows].join('\n')
  const listed = read('docs/configuration.md').split('<!-- settings -->')[1]?.split('<!-- /settings -->')[0]?.trim()
  expect(listed).toBe(table)
})

test('test/README.md lists every file of test/support with the comment at its top', () => {
  const page = read('test/README.md')
  const lines = globSync('test/support/*.ts').map((path) => {
    const [, comment = ''] = /^\/\*\*(.*?)\*\//s.exec(read(path)) ?? []
    return `- \`${basename(path)}\`: ${comment.replaceAll(/(\s*\n \*)+\s*/g, ' ').trim()}`
  })
  expect(page.split('\n').filter((line) => line.startsWith('- '))).toEqual(expect.arrayContaining(lines))
  expect(lines).toHaveLength(page.match(/^- /gm)?.length ?? 0)
})

test('the README begins with the workflow of new projects, and has fewer than 150 lines', () => {
  const readme = read('README.md')
  expect(readme).toContain(`\`\`\`ts\n${read('src/commands/project/template/workflows/greet.ts')}\`\`\``)
  expect(readme.split('\n').length).toBeLessThan(150)
  for (const command of ['npx execution-service init shop && cd shop', 'npm ci && npm run demo', 'npm ci && npm test'])
    expect(readme).toContain(`\n${command}\n`)
})

test('the code of the guide to sign-ins is that of the examples, which tests run', () => {
  const blocks = [...read('docs/guides/sign-ins.md').matchAll(/^```ts\n\/\/ (\S+)\n(.*?)^```/gms)]
  expect(blocks.length).toBeGreaterThan(4)
  for (const [, path = '', code] of blocks) expect(read(path)).toContain(code)
})

test.each(documents)('%s names settings, commands and files that exist', (document) => {
  const text = read(document)
  const variables = [...text.matchAll(/`([A-Z]+(?:_[A-Z]+)+)(?:=[^`]*)?`/g)].map(([, name = '']) => name)
  const others =
    /^(EXAMPLE_|NODE_|OTEL_|UPGRADE_|MOCK_|SHOP_|SSL_|LD_|HTTPS?_PROXY|NO_PROXY|TEST_|API_KEY|WEBHOOK_SECRET|POSTGRES_|TEST_POSTGRES_BIN|RUN_ID|BROWSER_CONTEXT_ID)/
  expect(variables.filter((name) => !(name in settings) && !others.test(name))).toEqual([])

  const scripts = [...text.matchAll(/npm run (?:--silent )?(\w[\w:-]*)/g)].map(([, name = '']) => name)
  expect(scripts.filter((name) => !(name in packageJson.scripts))).toEqual([])

  const links = [...text.matchAll(/\]\(([^)#:]+)(?:#[^)]*)?\)/g)].map(([, path = '']) => path)
  expect(links.filter((path) => !existsSync(join(dirname(document), path)))).toEqual([])
  // A guide may create files that do not exist yet.
  if (document.endsWith('adding-an-operation.md')) return
  const paths = [...text.matchAll(/`((?:src|test|docs|bench|deploy|examples|openapi|generated)\/[\w./*-]+)`/g)]
  expect(paths.map(([, path = '']) => path).filter((path) => globSync(path).length === 0)).toEqual([])
})

/** What is of a reader, of an example, or of a website. */
const otherFiles =
  /^(\.\/order\.ts|20b\.ts|b\.ts|name\.md|scenarios\.yaml|THIRD-PARTY-NOTICES\.md|execution[\w-]*\.html|sqlite\.org\/.*)$/

/** Comments of code and of configuration, and the text of documents without their samples. */
function proseOf(path: string): string {
  const text = read(path)
  if (path.endsWith('.md')) return text.replaceAll(/^```.*?^```/gms, '')
  const comment = /\.[jt]s$/.test(path) ? /\/\*.*?\*\/|(?<![:'"`])\/\/[^\n]*/gs : /(?<=^|\s)#.*/g
  return (text.match(comment) ?? []).join('\n')
}

test('every file that comments, documents and decisions name exists', () => {
  const directories = 'src,test,docs,deploy,examples,bench,openapi,.ci,clients,generated'
  const files = globSync([`{${directories}}/**/*.*`, '*.*'], { exclude: ['**/node_modules/**'] })
  const ends = new Set(files.flatMap((path) => path.split('/').map((_, index, parts) => parts.slice(index).join('/'))))
  const name =
    /(?<![\w@./<$*{-])((?:[\w.-]+\/)*[\w-]+(?:\.[\w-]+)*\.(?:ts|md|mjs|cjs|sh|yaml|sql|css|html))(?![\w/(-])/g
  const written = files.filter(
    (path) =>
      /\.(ts|js|md|yaml)$/.test(path) && !/^generated|^docs\/samples|^openapi\/released|adding-an-operation/.test(path),
  )
  expect(written.length).toBeGreaterThan(700)
  const missing = written.flatMap((path) =>
    [...proseOf(path).matchAll(name)].flatMap(([, file = '']) => {
      const isThere = ends.has(file) || existsSync(join(dirname(path), file))
      return isThere || otherFiles.test(file) ? [] : [`${path}: ${file}`]
    }),
  )
  expect(missing).toEqual([])
})

const architecture = read('docs/architecture.md')

test.each(readingPaths)('the path of a $name has at most $filesMax files', ({ name, filesMax }) => {
  const section = architecture.split(`<!-- path: ${name} -->`)[1]?.split('<!-- end -->')[0] ?? ''
  const files = [...section.matchAll(/^\d+\. `(src\/[^`]+\.ts)`/gm)].map(([, file]) => file)
  expect(files.length).toBeGreaterThan(3)
  expect(files.length).toBeLessThanOrEqual(filesMax)
})

test('the diagram of modules has every entry of src/', () => {
  const diagram = architecture.split('```mermaid\n')[2]?.split('```')[0] ?? ''
  for (const entry of globSync('src/*')) expect(diagram).toContain(entry.slice('src/'.length))
})
