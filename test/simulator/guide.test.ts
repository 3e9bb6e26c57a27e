import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { Workflows } from '../../src/domain/workflows/workflows.ts'
import { Faults, faultsSchema } from '../../src/simulator/faults.ts'
import { Scenarios } from '../../src/simulator/scenarios.ts'
import { scenariosSchema } from '../../src/simulator/scenarios-schema.ts'
import { memberTable } from './member-table.ts'

type Schema = { properties: Record<string, Schema>; additionalProperties: Schema; [keyword: string]: unknown }

const read = (path: string) => readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8')
const guide = read('docs/guides/scenarios.md')
const workflows = new Workflows(JSON.parse(read('generated/example-workflows.json')))

const { scenario, action } = scenariosSchema.$defs as Record<string, Schema>
const { error, evidence } = (scenario as Schema).properties
const { ask } = (action as Schema).properties
const { answers } = (ask as Schema).properties
const answer = (answers as Schema).items as Schema
const detailed = Object.entries((action as Schema).properties).filter(([, { properties }]) => properties !== undefined)
const { operations } = (faultsSchema as Schema).properties
const fault = (operations as Schema).additionalProperties
const tables = { scenario, action, answer, error, evidence, fault, ...Object.fromEntries(detailed) } as Record<
  string,
  Schema
>

test.each(Object.entries(tables))('the guide has every member of %s as its schema describes it', (_, schema) => {
  expect(guide).toContain(`\n${memberTable(schema)}\n`)
})

const blocks = [...guide.matchAll(/```(\w+)\n(.*?)```/gs)].map(([, language, text]) => ({ language, text: text ?? '' }))
const samples = blocks.filter(({ language }) => language === 'yaml').map(({ text }) => text)

test('the samples of the guide are valid scenarios of the example workflows', () => {
  expect(samples.length).toBeGreaterThan(3)
  for (const sample of samples) expect(() => Scenarios.read(sample, workflows)).not.toThrow()
})

test('a mistake in the sample is refused as the guide says', () => {
  const [sample = ''] = samples
  const messageFor = (text: string) => {
    try {
      Scenarios.read(text, workflows)
    } catch (error) {
      return (error as Error).message
    }
    throw new Error('It was accepted.')
  }
  const mistyped = sample.replace('durationSeconds', 'durationSecond')
  const wrong = sample.replace('output: { words: 1204', 'output: { words: many')
  const shown = blocks.find(({ language }) => language === 'text')?.text
  expect(`${messageFor(mistyped)}\n${messageFor(wrong)}\n`).toBe(shown)
})

test('the requests of the guide are accepted', () => {
  const bodies = blocks.flatMap(({ text }) => [...text.matchAll(/--json '(.*?)'/gs)].map(([, body]) => body ?? ''))
  const [scenarios, faults] = bodies.map((body) => JSON.parse(body))
  expect(() => Scenarios.from(scenarios, workflows)).not.toThrow()
  const documented = ['queueRemoteRun', 'getRun'].map((id) => ({ id, responses: new Set([429, 503, 507]) }))
  expect(new Faults('seed', documented).set(faults)).toEqual([])
})

test.each(['orders', 'order-page'])('the guide shows the tests of %s, which run', (name) => {
  expect(blocks.map(({ text }) => text)).toContain(read(`examples/front-end/${name}.test.ts`))
})

test('the published schema is the one that the simulator uses', () => {
  expect(JSON.parse(read('generated/scenarios.schema.json'))).toEqual(JSON.parse(JSON.stringify(scenariosSchema)))
})
