/** What a change of a document requires: a higher version, a line in the changelog, and in v1 that it breaks no client. */
import { describe, expect, test } from 'vitest'
import { checkChangelog, renderReleased, renderUnreleased } from '../../src/tools/contract-checks/changelog.ts'
import type { CheckedContract } from '../../src/tools/contract-checks/checked-contract.ts'
import { checkCompatibility, isLower } from '../../src/tools/contract-checks/compatibility.ts'
import { modify, type Part, parameterOf, readCurrent, run, schemaOf } from './modified-documents.ts'

const documents = { 'execution.v1': readCurrent(), 'browser-context.alpha': readCurrent('browser-context.alpha') }

function createContract(name: keyof typeof documents, version: string, change: (copy: Part) => void): CheckedContract {
  const released = modify(documents[name], (it) => (it.info.version = name === 'execution.v1' ? '1.4.2' : '0.4.2'))
  const current = modify(released, (it) => {
    it.info.version = version
    change(it)
  })
  return { name, released, current }
}

const nothing = () => {}
const description = (it: Part) => (it.info.description = 'New.')
const addition = (it: Part) => (schemaOf(it, 'Problem').properties.hint = { type: 'string' })
const breakingChange = (it: Part) => delete schemaOf(it, 'Problem').properties.detail

describe('the required version', () => {
  test.each([
    ['nothing', nothing, '1.4.2', undefined],
    ['a description', description, '1.4.2', '1.4.3'],
    ['a description', description, '1.4.3', undefined],
    ['an addition', addition, '1.4.3', '1.5.0'],
    ['an addition', addition, '1.5.0', undefined],
    ['an addition', addition, '2.0.0', undefined],
    ['nothing, with a lower version', nothing, '1.4.1', '1.4.2'],
  ] as const)('of v1 follows Semantic Versioning: %s as %# %s', (_, change, version, required) => {
    const { findings } = checkCompatibility([createContract('execution.v1', version, change)])
    expect(findings.map(({ severity }) => severity)).toEqual(required ? ['error'] : [])
    if (required) expect(findings[0]?.fix).toContain(`\`info.version\` to ${required},`)
  })

  test.each([
    ['nothing', nothing, '0.4.2', undefined],
    ['an addition', addition, '0.4.2', '0.4.3'],
    ['an addition', addition, '0.4.3', undefined],
  ] as const)('of the alpha is a warning: %s as %# %s', (_, change, version, required) => {
    const { findings } = checkCompatibility([createContract('browser-context.alpha', version, change)])
    expect(findings.map(({ severity }) => severity)).toEqual(required ? ['warning'] : [])
    if (required) expect(findings[0]?.fix).toContain(`\`info.version\` to ${required},`)
  })

  test('is compared number by number', () => {
    expect(isLower('1.9.0', '1.10.0')).toBe(true)
    expect(isLower('1.10.0', '1.9.9')).toBe(false)
    expect(isLower('1.1.0', '1.1.0')).toBe(false)
  })
})

test('a breaking change of v1 is an error with every version, and names the operation, location and reason', () => {
  for (const version of ['1.4.2', '1.5.0', '2.0.0']) {
    const { findings } = checkCompatibility([
      createContract('execution.v1', version, (it) => (parameterOf(it, 'Priority').schema.maximum = 5)),
    ])
    expect(findings[0]).toMatchObject({
      severity: 'error',
      message: 'Query parameter `priority` of `queueRemoteRun` has the maximum 5 instead of 10.',
      location: expect.stringMatching(
        /^openapi\/execution\.v1\.yaml, queueRemoteRun: \/paths\/.*\/parameters\/priority/,
      ),
      reason: 'Requests that were accepted are now rejected.',
    })
  }
})

test('a breaking change of the alpha is a warning', () => {
  const { findings } = checkCompatibility([createContract('browser-context.alpha', '0.5.0', breakingChange)])
  expect(findings.length).toBeGreaterThan(0)
  expect(new Set(findings.map(({ severity }) => severity))).toEqual(new Set(['warning']))
})

describe('the changelog of the contract', () => {
  const history =
    '<!-- Released; above: written by `npm run changes`. -->\n\n## Execution API 1.4.2 (2026-01-02)\n\nIt was.\n'
  const contracts = [
    createContract('execution.v1', '1.5.0', (it) => {
      addition(it)
      it.paths[run].get.deprecated = true
    }),
    createContract('browser-context.alpha', '0.5.0', breakingChange),
  ]

  test('lists the changes of each document above the history, the most severe first', () => {
    const text = renderUnreleased(contracts, history)
    const lines = text.split('\n').filter((it) => /^(#|-)/.test(it))
    expect(lines).toEqual([
      '# Changes',
      '## Execution API 1.5.0, not released yet',
      '### Added',
      expect.stringMatching(
        /^- `Problem` has the new member `hint` \(`queueRemoteRun`, `queueRemoteRunBatch`, `listRuns` and \d+ more\)\.$/,
      ),
      '### Deprecated',
      '- `getRun` is deprecated.',
      '## Browser Context API 0.5.0, not released yet',
      '### Breaking',
      expect.stringMatching(/^- `Problem` no longer has the member `detail` \(.*\)\. Clients .*\.$/),
      '## Execution API 1.4.2 (2026-01-02)',
    ])
  })

  test('is out of date when it lists other changes', () => {
    const text = renderUnreleased(contracts, history)
    expect(checkChangelog(contracts, text)).toEqual([])
    expect(checkChangelog([...contracts.slice(0, 1)], text)).toMatchObject([{ severity: 'error' }])
    expect(checkChangelog(contracts, history)).toMatchObject([{ fix: expect.stringContaining('npm run changes') }])
  })

  test('is not written when the released part cannot be found', () => {
    for (const text of [history.replace('Released;', 'Realeased;'), history + history]) {
      expect(() => renderUnreleased(contracts, text)).toThrow(/must contain this line exactly once/)
      expect(checkChangelog(contracts, text)).toMatchObject([{ fix: expect.stringContaining('Insert this line') }])
    }
  })

  test('becomes history with a release, above older history', () => {
    const text = renderReleased(contracts, renderUnreleased(contracts, history), '2026-02-03')
    expect(text.split('\n').filter((it) => it.startsWith('## '))).toEqual([
      '## Execution API 1.5.0 (2026-02-03)',
      '## Browser Context API 0.5.0 (2026-02-03)',
      '## Execution API 1.4.2 (2026-01-02)',
    ])
    const afterRelease = contracts.map((it) => ({ ...it, released: it.current }))
    expect(checkChangelog(afterRelease, text)).toEqual([])
  })
})
