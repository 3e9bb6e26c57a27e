/** Keeps an option of a run cheap to add: few files name it, and the others read its description. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { type OptionName, optionNames } from '../../src/domain/queue/run-options.ts'

const filesMax = 9

const withoutComments = (text: string) => text.replaceAll(/\/\*[\s\S]*?\*\/|^ *\/\/.*$/gm, '')
const source = fileURLToPath(new URL('../../src', import.meta.url))
const code = new Map(
  readdirSync(source, { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.ts'))
    .map((file) => [file, withoutComments(readFileSync(join(source, file), 'utf8'))]),
)

// By option: files and folders that act on its value, or use its name for something else, such as the delay of a retry.
// The options of a call stand in the authors' API too. Of a browser context, the id also names a resource with pages and operations, so its files are not counted.
const others: { [Name in Exclude<OptionName, 'browserContextId'>]: string[] } = {
  delaySeconds: ['domain/queue/attempts.ts', 'domain/runs/run-state.ts', 'worker/testing/run-workflow.ts'],
  expiresInSeconds: [],
  priority: ['domain/queue/claim.ts', 'domain/queue/waiting.ts', 'storage/runs/sqlite-run-statements.ts'],
  tags: [
    'check/',
    'commands/runs.ts',
    'domain/notifications/',
    'domain/run-api/list-request.ts',
    'domain/webhooks/',
    'domain/workflows/define-workflow.ts',
    'domain/workflows/workflows-document.ts',
    'openapi/',
    'storage/tables/tables.ts',
    'surfaces/dashboard/webhooks/',
    'surfaces/docs/',
    'tools/generate/',
  ],
  persistContext: [
    'domain/browser-contexts/run-contexts.ts',
    'domain/queue/attempts.ts',
    'domain/remote-workers/',
    'surfaces/dashboard/browser-contexts/context-pages.ts',
    'worker/attempt/',
    'worker/remote/',
  ],
  concurrencyKey: ['surfaces/docs/workflow-markdown.ts'],
}

test.each(Object.entries(others))(`at most ${filesMax} files of src/ name the option %s of a run`, (name, excluded) => {
  expect(optionNames).toContain(name)
  const files = [...code].filter(([, text]) => new RegExp(`\\b${name}\\b`).test(text)).map(([file]) => file)
  for (const other of excluded) expect(files.some((file) => file.startsWith(other))).toBe(true)
  const naming = files.filter((file) => !excluded.some((other) => file.startsWith(other)))
  expect(naming, 'the file that describes all options').toContain('domain/queue/run-options.ts')
  expect(naming.length, naming.join('\n')).toBeLessThanOrEqual(filesMax)
})
