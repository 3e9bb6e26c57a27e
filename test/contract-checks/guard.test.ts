/** The whole guard, and a release, on copies of this checkout. */
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { checkChangelog } from '../../src/tools/contract-checks/changelog.ts'
import { checkCompatibility } from '../../src/tools/contract-checks/compatibility.ts'
import { type Finding, shownFinding } from '../../src/tools/contract-checks/finding.ts'
import { release, writeChanges } from '../../src/tools/contract-checks/release.ts'
import {
  currentPath,
  readChangelog,
  readCheckedContract,
  releasedPath,
  runContractChecks,
} from '../../src/tools/contract-checks/run-checks.ts'
import { type Part, run } from './altered.ts'

let folder: string
const names = ['execution.v1', 'browser-context.alpha'] as const
const changes = 'docs/guides/changes.md'

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'guard-'))
  for (const file of [...names.flatMap((name) => [currentPath(name), releasedPath(name)]), changes]) {
    mkdirSync(dirname(join(folder, file)), { recursive: true })
    cpSync(file, join(folder, file))
  }
})

afterEach(() => rmSync(folder, { recursive: true }))

function edit(alter: (document: Part) => void): void {
  const path = join(folder, currentPath('execution.v1'))
  const document = JSON.parse(readFileSync(path, 'utf8'))
  alter(document)
  writeFileSync(path, `${JSON.stringify(document, null, 2)}\n`)
}

function findings(): Finding[] {
  const guarded = readCheckedContract(folder)
  return [...checkCompatibility(guarded).findings, ...checkChangelog(guarded, readChangelog(folder))]
}

test('this checkout is clean: nothing is found, and each guard says what it looked at', async () => {
  const reports = await runContractChecks('.')
  expect(reports.flatMap((it) => it.findings).filter((it) => it.severity === 'error')).toEqual([])
  const looked = reports.map((it) => it.looked).join(' ')
  expect(looked).toMatch(/\d+ changes since .* 2\d security rules .*[1-9]\d patterns .*[1-9]\d{3} words/)
})

test('a change is refused until its version is high enough and the changelog tells it; then it can be released', () => {
  edit((it) => {
    it.paths[run].get.responses['410'] = { ...it.paths[run].get.responses['404'] }
    it.info.version = '1.0.0'
  })
  expect(findings().map(({ where }) => where)).toEqual(['openapi/execution.v1.yaml, /info/version', changes])
  edit((it) => (it.info.version = '1.99.0'))
  expect(findings().map(({ where }) => where)).toEqual([changes])
  writeChanges(folder)
  expect(findings()).toEqual([])

  expect(release(folder, '2027-01-02')).toContain('Execution API 1.99.0')
  for (const name of names) {
    const [current, released] = [currentPath(name), releasedPath(name)].map((it) =>
      readFileSync(join(folder, it), 'utf8'),
    )
    expect(released).toBe(current)
  }
  expect(readFileSync(join(folder, changes), 'utf8')).toContain('## Execution API 1.99.0 (2027-01-02)')
  expect(findings()).toEqual([])
  expect(release(folder, '2027-01-03')).toEqual([])
})

test('what breaks v1 is shown with the place, the reason and what to do, and is never right', () => {
  edit((it) => {
    delete it.paths[run]
    it.info.version = '1.99.0'
  })
  expect(findings()).toContainEqual(expect.objectContaining({ mend: expect.stringContaining('npm run changes') }))
  writeChanges(folder)
  expect(findings().map(shownFinding)).toEqual([
    [
      'error: `getRun` is gone.',
      '    openapi/execution.v1.yaml, getRun: /paths/~1v1~1execution~1runs~1{runId}/get',
      '    Whoever calls it is answered 404 or 405.',
      '    Take it back, or add what is new beside what there is: v1 is a promise.',
    ].join('\n'),
  ])
})
