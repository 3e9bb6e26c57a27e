/** What the guides say of the contract is what the contract says. */
import { expect, test } from 'vitest'
import { problemKinds } from '../../src/contract/problem.ts'
import { type Contract, decisionsOf, readContracts, transitionsOf } from '../../src/surfaces/docs/contracts.ts'
import { samplesOf } from '../../src/surfaces/docs/samples.ts'
import { idsIn, textOf } from './site.ts'

const contracts = readContracts()
const operations = contracts.flatMap(({ operations }) => operations)

test('every type of problem has its section in the guide of errors, with its status, and no section is left over', async () => {
  const sections = [...(await textOf('errors.md')).matchAll(/^## (.+)\n\n\*\*(\d{3})\.\*\*/gm)]
  const told = sections.map(([, kind, status]) => [kind, Number(status)])
  expect(told.sort()).toEqual(
    Object.entries(problemKinds)
      .map(([kind, { status }]) => [kind, status])
      .sort(),
  )
  expect((await textOf('errors.md')).match(/^## /gm)).toHaveLength(told.length)
})

test('every type that the documents show resolves to a section', async () => {
  const ids = idsIn(await textOf('errors.html'))
  const types = contracts.flatMap(({ json }) => [...json.toString().matchAll(/"(\/docs\/errors#[^"]*)"/g)])
  expect(types.length).toBeGreaterThan(10)
  for (const [, type = ''] of types) expect(ids).toContain(type.slice('/docs/errors#'.length))
})

test('the diagram of the run life cycle and its text alternative have every transition of the document', async () => {
  const page = await textOf('run-life-cycle.html')
  const [execution] = contracts as [Contract]
  const transitions = transitionsOf(execution)
  expect(transitions).toHaveLength(8)
  expect(page.match(/class="edge"/g)).toHaveLength(transitions.length)
  const states = new Set(transitions.flatMap(({ from, to }) => [from, to]))
  for (const state of states) expect(page).toMatch(new RegExp(`<text [^>]+>${state}</text>`))
  for (const { from, to } of transitions) expect(page).toContain(`From ${from} to ${to}: `)
  const statuses = execution.document.components.schemas?.RunStatus?.enum as string[]
  expect([...states].sort()).toEqual([...statuses].sort())
})

test('the page of decisions has each place that a document marks, and the reason', async () => {
  const page = await textOf('decisions.md')
  for (const contract of contracts) {
    const decisions = decisionsOf(contract)
    expect(decisions).toHaveLength(contract.json.toString().match(/"x-decision": true/g)?.length ?? 0)
    for (const { place, reason } of decisions) expect(page).toContain(`| ${place} | ${reason} |`)
  }
})

test('the scopes of the guide of authentication permit the operations that the documents say', async () => {
  const rows = [...(await textOf('authentication.md')).matchAll(/^\| `([\w-]+:\w+)` \| (.+) \|$/gm)]
  const told = rows.flatMap(([, scope, names = '']) =>
    [...names.matchAll(/`(\w+)`/g)].map(([, id]) => `${id} ${scope}`),
  )
  const documented = operations.flatMap(({ id, operation }) => {
    const [requirement = {}] = operation.security as Record<string, string[]>[]
    return Object.values(requirement).flatMap((scopes) => scopes.map((scope) => `${id} ${scope}`))
  })
  expect(told.sort()).toEqual(documented.sort())
})

test('the search knows every operation and every section of a guide', async () => {
  const [, name = ''] = /data-index="([^"]+)"/.exec(await textOf('index.html')) ?? []
  const index = await textOf(name)
  for (const { id, summary } of operations) {
    expect(index).toContain(JSON.stringify(JSON.stringify(summary)).slice(1, -1))
    expect(index).toContain(`/${id.toLowerCase()}`)
  }
  for (const kind of Object.keys(problemKinds)) expect(index).toContain(`errors.html#${kind}`)
})

test('the reference shows the samples of every operation', async () => {
  for (const { page, operations } of contracts) {
    const [script = ''] = (await textOf(`${page}.html`)).match(new RegExp(`${page}\\.[\\w-]+\\.js`)) ?? []
    const shown = await textOf(script)
    for (const { id } of operations) {
      const samples = samplesOf(id)
      expect([id, samples.length]).toEqual([id, 3])
      // The document is JSON, in a string of a script.
      const texts = samples.map(({ source }) => JSON.stringify(JSON.stringify(source).slice(1, -1)).slice(1, -1))
      expect([id, texts.filter((text) => !shown.includes(text))]).toEqual([id, []])
    }
  }
})
