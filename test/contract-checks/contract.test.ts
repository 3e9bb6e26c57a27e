/** What a change of a document asks for: a higher version, a line in the changelog, and in v1 that it breaks nobody. */
import { describe, expect, test } from 'vitest'
import { changelog, checkChangelog, releasedChangelog } from '../../src/tools/contract-checks/changelog.ts'
import { checkCompatibility, isLower } from '../../src/tools/contract-checks/compatibility.ts'
import type { CheckedContract } from '../../src/tools/contract-checks/finding.ts'
import { altered, current, type Part, parameterOf, run, schemaOf } from './altered.ts'

const released = { 'execution.v1': current(), 'browser-context.alpha': current('browser-context.alpha') }

function guardedWith(name: keyof typeof released, version: string, alter: (copy: Part) => void): CheckedContract {
  const was = altered(released[name], (it) => (it.info.version = name === 'execution.v1' ? '1.4.2' : '0.4.2'))
  const is = altered(was, (it) => {
    it.info.version = version
    alter(it)
  })
  return { name, released: was, current: is }
}

const nothing = () => {}
const words = (it: Part) => (it.info.description = 'Other words.')
const addition = (it: Part) => (schemaOf(it, 'Problem').properties.hint = { type: 'string' })
const breaking = (it: Part) => delete schemaOf(it, 'Problem').properties.detail

describe('a version is as high as its changes ask for', () => {
  const stable = [
    ['nothing', nothing, '1.4.2', []],
    ['words', words, '1.4.2', ['1.4.3']],
    ['words', words, '1.4.3', []],
    ['an addition', addition, '1.4.3', ['1.5.0']],
    ['an addition', addition, '1.5.0', []],
    ['an addition', addition, '2.0.0', []],
    ['nothing, with a lower version', nothing, '1.4.1', ['1.4.2']],
  ] as const
  test.each(stable)('v1: %s as %# %s', (_, alter, version, wanted) => {
    const { findings } = checkCompatibility([guardedWith('execution.v1', version, alter)])
    expect(findings.map(({ severity }) => severity)).toEqual(wanted.map(() => 'error'))
    for (const least of wanted) expect(findings[0]?.mend).toContain(`\`info.version\` to ${least},`)
  })

  const alpha = [
    ['nothing', nothing, '0.4.2', []],
    ['an addition', addition, '0.4.2', ['0.4.3']],
    ['an addition', addition, '0.4.3', []],
  ] as const
  test.each(alpha)('alpha, where it is a warning: %s as %# %s', (_, alter, version, wanted) => {
    const { findings } = checkCompatibility([guardedWith('browser-context.alpha', version, alter)])
    expect(findings.map(({ severity }) => severity)).toEqual(wanted.map(() => 'warning'))
    for (const least of wanted) expect(findings[0]?.mend).toContain(`\`info.version\` to ${least},`)
  })

  test('numbers are compared as numbers', () => {
    expect(isLower('1.9.0', '1.10.0')).toBe(true)
    expect(isLower('1.10.0', '1.9.9')).toBe(false)
    expect(isLower('1.1.0', '1.1.0')).toBe(false)
  })
})

test('a breaking change of v1 is an error under every version, and says operation, place and whom it breaks', () => {
  for (const version of ['1.4.2', '1.5.0', '2.0.0']) {
    const { findings } = checkCompatibility([
      guardedWith('execution.v1', version, (it) => (parameterOf(it, 'Priority').schema.maximum = 5)),
    ])
    expect(findings[0]).toMatchObject({
      severity: 'error',
      what: 'Query parameter `priority` of `queueRemoteRun` has the maximum 5 instead of 10.',
      where: expect.stringMatching(/^openapi\/execution\.v1\.yaml, queueRemoteRun: \/paths\/.*\/parameters\/priority/),
      why: 'A request that was accepted until now is refused.',
    })
  }
})

test('a breaking change of the alpha is a warning', () => {
  const { findings } = checkCompatibility([guardedWith('browser-context.alpha', '0.5.0', breaking)])
  expect(findings.length).toBeGreaterThan(0)
  expect(new Set(findings.map(({ severity }) => severity))).toEqual(new Set(['warning']))
})

describe('the changelog of the contract', () => {
  const history =
    '<!-- Released; above: written by `npm run changes`. -->\n\n## Execution API 1.4.2 (2026-01-02)\n\nIt was.\n'
  const guarded = [
    guardedWith('execution.v1', '1.5.0', (it) => {
      addition(it)
      it.paths[run].get.deprecated = true
    }),
    guardedWith('browser-context.alpha', '0.5.0', breaking),
  ]

  test('tells what has changed by document, the gravest first, above what was released', () => {
    const text = changelog(guarded, history)
    const lines = text.split('\n').filter((it) => /^(#|-)/.test(it))
    expect(lines).toEqual([
      '# Changes',
      '## Execution API 1.5.0, not released yet',
      '### Added',
      expect.stringMatching(
        /^- `Problem` has the new member `hint` \(`queueRemoteRun`, `listRuns`, `getRun` and \d more\)\.$/,
      ),
      '### Deprecated',
      '- `getRun` is deprecated.',
      '## Browser Context API 0.5.0, not released yet',
      '### Breaking',
      expect.stringMatching(/^- `Problem` does not have the member `detail` any more \(.*\)\. A client .*\.$/),
      '## Execution API 1.4.2 (2026-01-02)',
    ])
  })

  test('is found stale when it tells other changes, of the alpha too', () => {
    const text = changelog(guarded, history)
    expect(checkChangelog(guarded, text)).toEqual([])
    expect(checkChangelog([...guarded.slice(0, 1)], text)).toMatchObject([{ severity: 'error' }])
    expect(checkChangelog(guarded, history)).toMatchObject([{ mend: expect.stringContaining('npm run changes') }])
  })

  test('is never written over when nothing tells what was released', () => {
    for (const text of [history.replace('Released;', 'Realeased;'), history + history]) {
      expect(() => changelog(guarded, text)).toThrow(/must have this line once/)
      expect(checkChangelog(guarded, text)).toMatchObject([{ mend: expect.stringContaining('Put this line back') }])
    }
  })

  test('becomes history by a release, once, and what was history stays', () => {
    const text = releasedChangelog(guarded, changelog(guarded, history), '2026-02-03')
    expect(text.split('\n').filter((it) => it.startsWith('## '))).toEqual([
      '## Execution API 1.5.0 (2026-02-03)',
      '## Browser Context API 0.5.0 (2026-02-03)',
      '## Execution API 1.4.2 (2026-01-02)',
    ])
    const after = guarded.map((it) => ({ ...it, released: it.current }))
    expect(checkChangelog(after, text)).toEqual([])
  })
})
