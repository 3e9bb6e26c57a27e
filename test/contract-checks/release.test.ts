/** All contract checks on this checkout, and releases on copies of it. */
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import {
  checkChangelog,
  readChangelog,
  releaseContracts,
  writeChangelog,
} from '../../src/tools/contract-checks/changelog.ts'
import {
  currentPath,
  type Finding,
  formatFinding,
  readCheckedContracts,
  releasedPath,
} from '../../src/tools/contract-checks/checked-contract.ts'
import { checkCompatibility } from '../../src/tools/contract-checks/compatibility.ts'
import { type Part, run } from './modified-documents.ts'

let folder: string
const names = ['execution.v1', 'browser-context.alpha'] as const
const changelog = 'docs/guides/changes.md'

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'contract-checks-'))
  for (const file of [...names.flatMap((name) => [currentPath(name), releasedPath(name)]), changelog]) {
    mkdirSync(dirname(join(folder, file)), { recursive: true })
    cpSync(file, join(folder, file))
  }
})

afterEach(() => rmSync(folder, { recursive: true }))

function edit(change: (document: Part) => void): void {
  const path = join(folder, currentPath('execution.v1'))
  const document = JSON.parse(readFileSync(path, 'utf8'))
  change(document)
  writeFileSync(path, `${JSON.stringify(document, null, 2)}\n`)
}

function listFindings(): Finding[] {
  const contracts = readCheckedContracts(folder)
  return [...checkCompatibility(contracts).findings, ...checkChangelog(contracts, readChangelog(folder))]
}

test('a release requires a higher version and an up-to-date changelog', () => {
  edit((it) => {
    it.paths[run].get.responses['410'] = { ...it.paths[run].get.responses['404'] }
    it.info.version = '1.0.0'
  })
  expect(listFindings().map(({ location }) => location)).toEqual([
    'openapi/execution.v1.yaml, /info/version',
    changelog,
  ])
  edit((it) => (it.info.version = '1.99.0'))
  expect(listFindings().map(({ location }) => location)).toEqual([changelog])
  writeChangelog(folder)
  expect(listFindings()).toEqual([])

  expect(releaseContracts(folder, '2027-01-02')).toContain('Execution API 1.99.0')
  for (const name of names) {
    const [current, released] = [currentPath(name), releasedPath(name)].map((it) =>
      readFileSync(join(folder, it), 'utf8'),
    )
    expect(released).toBe(current)
  }
  expect(readFileSync(join(folder, changelog), 'utf8')).toContain('## Execution API 1.99.0 (2027-01-02)')
  expect(listFindings()).toEqual([])
  expect(releaseContracts(folder, '2027-01-03')).toEqual([])
})

test('the changelog counts revised descriptions instead of listing them', () => {
  const revisions = () => Number(/were revised in (\d+) places?\./.exec(readChangelog(folder))?.[1] ?? 0)
  const before = revisions()
  edit((it) => {
    it.components.schemas.RetryPolicy.properties.maxAttempts.description = 'A new description.'
  })
  writeChangelog(folder)
  expect(revisions()).toBe(before + 1)
  expect(readChangelog(folder)).not.toContain('has a new description')
})

test('a breaking change of v1 is an error with its location, reason and fix, even with a new version', () => {
  edit((it) => {
    delete it.paths[run]
    it.info.version = '1.99.0'
  })
  expect(listFindings()).toContainEqual(expect.objectContaining({ fix: expect.stringContaining('npm run changes') }))
  writeChangelog(folder)
  expect(listFindings().map(formatFinding)).toEqual([
    [
      'error: `getRun` was removed.',
      '    openapi/execution.v1.yaml, getRun: /paths/~1v1~1execution~1runs~1{runId}/get',
      '    Calls get a 404 or 405 response.',
      '    Revert it, or add the new behaviour next to the old: v1 must not break clients.',
    ].join('\n'),
  ])
})
