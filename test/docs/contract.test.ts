/** The guides agree with the documents, and the search finds what readers type. */
import { expect, test } from 'vitest'
import { problemTypes } from '../../src/domain/problems.ts'
import { decisionsOf, readContracts, transitionsOf } from '../../src/surfaces/docs/contracts.ts'
import { elementIds, searchDocs, siteText } from './site.ts'

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
  const results = searchDocs(await siteText(name), query)
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
  ['run every monday', 'scheduling.html'],
  ['key rotation', 'running-in-production.html#key-rotation'],
  ['rotate an API key', 'authentication.html#create-a-key'],
  ['retry', 'idempotency-and-retries.html#what-to-repeat'],
  ['avoid duplicate runs', 'idempotency-and-retries.html'],
  ['timeout', 'writing-workflows.html#time-limit'],
  ['docker', 'running-in-production.html#containers'],
  ['run in kubernetes', 'operating.html#kubernetes'],
  ['connect to postgres', 'operating.html#postgresql'],
  ['S3 bucket', 'operating.html#artifacts-in-a-directory-or-bucket'],
  ['nginx', 'reverse-proxies.html#nginx'],
  ['systemd', 'running-in-production.html#systemd'],
  ['backup', 'running-in-production.html#backups'],
  ['upgrade', 'running-in-production.html#upgrades'],
  ['GitHub Actions', 'deploying-workflows.html#github-actions-and-gitlab'],
  ['GitLab CI', 'deploying-workflows.html#github-actions-and-gitlab'],
  ['roll back a deployment', 'deploying-workflows.html'],
  ['pin a version', 'deploying-workflows.html#which-code-executes-a-run'],
  ['staging environment', 'environments.html'],
  ['reset password', 'operating.html#signing-in-to-the-dashboard'],
  ['I forgot my password', 'operating.html#signing-in-to-the-dashboard'],
  ['single sign-on with Okta', 'operating.html#sign-in-with-your-identity-provider'],
  ['401 unauthorized', 'authentication.html#401-unauthorized'],
  ['non-retryable error', 'writing-workflows.html#end-the-retries'],
  ['out of memory', 'run-life-cycle.html#attempts'],
  ['cancel all runs of a tag', 'run-life-cycle.html#many-runs-at-once'],
  ['rerun a failed run', 'run-life-cycle.html#run-a-run-again'],
  ['why is my run stuck in the queue?', 'run-life-cycle.html#queued'],
  ['how long are runs kept?', 'backup-and-retention.html#retention'],
  ['delete personal data (GDPR)', 'backup-and-retention.html#leaving-an-accounts-data'],
  ['use a secret', 'secrets-and-settings.html'],
  ['find a log line', 'observability.html#logs'],
  ['approve by mail', 'notifications.html#answer-from-a-message'],
  ['wait for a human', 'runs-that-wait.html'],
  ['limit parallel runs per customer', 'writing-workflows.html#concurrency'],
  ['verify webhook signature', 'webhooks.html#verify-requests'],
  ['python async workflow', 'python.html#async-workflows'],
])('the search for "%s" finds %s among the first three results', async (query, address) => {
  expect((await search(query)).map((result) => result.split(' ').at(-1))).toContain(address)
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
