/** A deployment that breaks callers is described with the API keys whose calls would be refused. */
import type { Logger } from 'pino'
import { describe, expect, test } from 'vitest'
import { operator } from '../../../src/domain/audit-log/audit-log.ts'
import { deployDirectory } from '../../../src/domain/deployments/deploy-sources.ts'
import { Deployments } from '../../../src/domain/deployments/deployments.ts'
import type { Snapshot } from '../../../src/domain/deployments/snapshot.ts'
import type { JsonSchema } from '../../../src/domain/workflows/workflow.ts'
import { createManualClock } from '../../support/claims.ts'
import { newAccount, openDomain, queueRun, workflow } from '../../support/domain.ts'
import { stores } from '../../support/store-kinds.ts'

const variables = (properties: Record<string, JsonSchema>, more: JsonSchema = {}): JsonSchema => {
  return { type: 'object', additionalProperties: false, properties, ...more }
}

const members: Record<string, JsonSchema> = {
  size: { type: 'integer' },
  unit: { type: 'string', default: 'cm' },
  token: { type: 'string', minLength: 4, writeOnly: true },
}
const before = variables(members)
/** Bounds the size, drops the unit, and gives the secret a rule that its mask does not fulfil. */
const after = variables({
  size: { type: 'integer', maximum: 10 },
  token: { type: 'string', pattern: '^[a-z]+$', writeOnly: true },
})

function snapshotOf(version: string, schema: JsonSchema): Snapshot {
  const described = { ...workflow({ id: 'measure', version, variables: schema }), module: 'measure.js' }
  return { files: [{ path: 'measure.js', content: version }], externals: [], workflows: [described] }
}

describe.each(stores)('on the store "$name"', (kind) => {
  test('a start does not deploy a directory that breaks callers, unless that is allowed or it was rolled back', async (test) => {
    const domain = await openDomain(test, { kind, snapshot: snapshotOf('1.0.0', before) })
    const deployments = await new Deployments(domain.store).open()
    test.onTestFinished(() => deployments.close())
    const logged: [string, object][] = []
    const log = Object.fromEntries(
      ['info', 'warn', 'error'].map((level) => [level, (fields: object) => logged.push([level, fields])]),
    ) as unknown as Logger
    const deploy = async (snapshot: Snapshot, allowBreaking: boolean) => {
      const directory = { path: '/workflows', building: Promise.resolve(snapshot), allowBreaking }
      const report = await deployDirectory(deployments, directory, log)
      report()
      return deployments.installation.get('measure')?.version
    }
    expect(await deploy(snapshotOf('1.1.0', after), false)).toBe('1.0.0')
    expect(logged).toMatchObject([['error', { directory: '/workflows', problems: expect.any(Array) }]])
    expect(logged[0]?.[1]).toMatchObject({ problems: expect.arrayContaining([expect.stringContaining('maximum 10')]) })
    expect(await deploy(snapshotOf('1.1.0', after), true)).toBe('1.1.0')
    await deployments.rollback(null, operator)
    // It is what was deployed last: the rollback stays in effect.
    expect(await deploy(snapshotOf('1.1.0', after), false)).toBe('1.0.0')
    expect(logged.map(([level]) => level)).toEqual(['error', 'info', 'warn'])
    expect(await deploy(snapshotOf('2.0.0', after), false)).toBe('2.0.0')
  })

  test('only keys with calls of the last month that the new schemas refuse are named', async (test) => {
    const snapshot = snapshotOf('1.0.0', before)
    const domain = await openDomain(test, { kind, snapshot })
    const { accountId, userId, principal } = await newAccount(domain)
    const newKey = async (name: string) => {
      const { id } = await domain.apiKeys.create({ accountId, userId, name, scopes: null, expiresAt: null }, operator)
      return { accountId, apiKeyId: id }
    }
    const [large, small, deleted] = [await newKey('large'), await newKey('small'), await newKey('deleted')]
    const call = (caller: typeof principal, variables: Record<string, unknown>) =>
      queueRun(domain, caller, { workflowId: 'measure', variables })
    await call(large, { size: 11 })
    await call(large, { size: 12, unit: 'mm' })
    await call(large, { size: 1 })
    // Neither sends the unit, whose default is stored; the secret is stored as its mask.
    await call(small, { size: 10 })
    await call(small, { token: 'secret' })
    await call(deleted, { size: 99 })
    await domain.apiKeys.delete(accountId, deleted.apiKeyId, operator)

    const clock = createManualClock()
    const deployments = await new Deployments(domain.store, undefined, clock.now).open()
    test.onTestFinished(() => deployments.close())
    const [found, ...others] = await deployments.findBreakingVersions(snapshotOf('1.1.0', after), null)
    expect(others).toEqual([])
    expect(found).toMatchObject({ id: 'measure', before: '1.0.0', after: '1.1.0' })
    expect(found?.callers).toEqual([{ name: 'large', calls: 2 }])
    expect(found?.changes.map(({ text }) => text)).toEqual([
      '`variables.size` has the maximum 10.',
      '`variables.token` has the pattern `^[a-z]+$`.',
      '`variables` no longer accepts the member `unit`.',
    ])

    const none = (snapshot: Snapshot, account: string | null = null) =>
      expect(deployments.findBreakingVersions(snapshot, account)).resolves.toEqual([])
    await none(snapshotOf('2.0.0', after))
    await none(snapshotOf('1.1.0', before))
    const removed = { ...snapshot, workflows: [] }
    expect(await deployments.findBreakingVersions(removed, null)).toEqual([
      {
        id: 'measure',
        before: '1.0.0',
        after: null,
        changes: [],
        callers: [
          { name: 'large', calls: 3 },
          { name: 'small', calls: 2 },
        ],
      },
    ])
    // The account still sees the installation's workflow.
    await none(removed, accountId)
    // The schemas do not show it: the new default is invalid.
    const invalid = variables({ ...members, length: { type: 'integer', default: 'none' } })
    const [withDefault] = await deployments.findBreakingVersions(snapshotOf('1.1.0', invalid), null)
    expect(withDefault).toMatchObject({ changes: [], callers: [{ calls: 3 }, { calls: 2 }] })
    const another = await newAccount(domain)
    const [ofAnother] = await deployments.findBreakingVersions(snapshotOf('1.1.0', after), another.accountId)
    expect(ofAnother).toMatchObject({ id: 'measure', callers: [] })
    await none(removed, another.accountId)
    clock.advance(31 * 24 * 60 * 60)
    expect(await deployments.findBreakingVersions(snapshotOf('1.1.0', after), null)).toMatchObject([{ callers: [] }])
    await none(removed)
  })
})
