/** The guides agree with the documents, and the search finds what readers type. */
import MiniSearch from 'minisearch'
import { expect, test } from 'vitest'
import { problemTypes } from '../../src/domain/problems.ts'
import { decisionsOf, readContracts, transitionsOf } from '../../src/surfaces/docs/contracts.ts'
import { elementIds, siteText } from './site.ts'

const contracts = readContracts()
const operations = contracts.flatMap(({ operations }) => operations)

test('the guide to errors has one section for each problem type, with its status', async () => {
  const guide = await siteText('errors.md')
  const sections = [...guide.matchAll(/^## (.+)\n\n\*\*(\d{3})\.\*\*/gm)]
  const documented = sections.map(([, kind, status]) => [kind, Number(status)])
  const kinds = Object.entries(problemTypes).map(([kind, { status }]) => [kind, status])
  expect(documented.sort()).toEqual(kinds.sort())
  expect(guide.match(/^## /gm)).toHaveLength(kinds.length)
})

test('every problem type in the documents resolves to a section', async () => {
  const ids = elementIds(await siteText('errors.html'))
  const types = contracts.flatMap(({ document }) => [...JSON.stringify(document).matchAll(/"(\/docs\/errors#[^"]*)"/g)])
  expect(types.length).toBeGreaterThan(10)
  for (const [, type = ''] of types) expect(ids).toContain(type.slice('/docs/errors#'.length))
})

test('the guide to the run life cycle lists every transition of the document', async () => {
  const guide = await siteText('run-life-cycle.md')
  const transitions = contracts.flatMap(transitionsOf)
  expect(transitions).toHaveLength(12)
  for (const { from, to, when } of transitions) expect(guide).toContain(`| \`${from}\` | \`${to}\` | ${when} |`)
  const states = new Set(transitions.flatMap(({ from, to }) => [from, to]))
  const statuses = contracts.flatMap(({ document }) => document.components.schemas?.RunStatus?.enum ?? [])
  expect([...states].sort()).toEqual(statuses.sort())
})

test('the page of decisions lists every marked decision with its reason', async () => {
  const page = await siteText('decisions.md')
  for (const contract of contracts) {
    const decisions = decisionsOf(contract)
    expect(decisions).toHaveLength(JSON.stringify(contract.document).match(/"x-decision":true/g)?.length ?? 0)
    for (const { place, reason } of decisions) expect(page).toContain(`| ${place} | ${reason} |`)
  }
})

test('the scopes in the guide to authentication permit the operations that the documents say', async () => {
  const rows = [...(await siteText('authentication.md')).matchAll(/^\| `([\w-]+:\w+)` \| (.+) \|$/gm)]
  const inGuide = rows.flatMap(([, scope, names = '']) =>
    [...names.matchAll(/`(\w+)`/g)].map(([, id]) => `${id} ${scope}`),
  )
  const inDocuments = operations.flatMap(({ id, operation }) => {
    // A second requirement has the scopes of parameters.
    const scopes = (operation.security as Record<string, string[]>[]).flatMap((it) => Object.values(it).flat())
    return [...new Set(scopes)].map((scope) => `${id} ${scope}`)
  })
  expect(inGuide.sort()).toEqual(inDocuments.sort())
})

/** The first results, as titles with addresses. */
async function search(query: string): Promise<string[]> {
  const [, name = ''] = /data-index="([^"]+)"/.exec(await siteText('index.html')) ?? []
  const script = await siteText(name)
  const { index, options } = JSON.parse(script.slice(script.indexOf('{')))
  const results = MiniSearch.loadJSON(index, options).search(query)
  return results.slice(0, 3).map(({ title, href }) => `${title} ${href}`)
}

test('the search finds every operation by its id and every problem type', async () => {
  for (const { id, href } of operations) expect((await search(id)).join()).toContain(href)
  for (const kind of Object.keys(problemTypes)) expect((await search(kind)).join()).toContain(`errors.html#${kind}`)
})

test.each([
  ['paginate', 'pagination.html'],
  ['SSE', 'following-a-run.html#events'],
  ['webhook', 'webhooks.html'],
  ['front end', 'client.html#in-a-web-page'],
  ['cron', 'scheduling.html'],
  ['key rotation', 'running-in-production.html#key-rotation'],
  ['retry', 'idempotency-and-retries.html'],
  ['timeout', 'writing-workflows.html#time-limit'],
  ['docker', 'running-in-production.html#containers'],
  ['systemd', 'running-in-production.html#systemd'],
  ['backup', 'running-in-production.html#backups'],
  ['upgrade', 'running-in-production.html#upgrades'],
])('the search for "%s" finds %s among the first three results', async (query, address) => {
  expect((await search(query)).join('\n')).toContain(address)
})

test.each([
  ['prometheus', 'observability.html#metrics'],
  ['invite member', 'operating.html#signing-in-to-the-dashboard'],
  ['two-factor lost', 'operating.html#signing-in-to-the-dashboard'],
  ['cors', 'configuration.html#pages-of-other-origins-cors'],
  ['delay a run', 'scheduling.html#once-later'],
  ['DATA_DIR', 'configuration.html'],
])('the search for "%s" finds %s first', async (query, address) => {
  expect((await search(query))[0]).toMatch(new RegExp(` ${address.replaceAll('.', '\\.')}$`))
})
