/** The samples on the page of each example workflow are run unchanged against the service. */
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import type { SampleLanguage } from '../../src/surfaces/docs/contracts.ts'
import { removeDirectory, startTestService, type TestService, temporaryDirectory } from '../support/service.ts'
import { buildOnce } from '../support/snapshots.ts'
import { preparePython, startSample, stopPython } from './run-sample.ts'

const directory = fileURLToPath(new URL('../../examples/workflows', import.meta.url))
// The samples follow a run to its end: one that waits for a person is answered in other tests.
const workflows = (await buildOnce(directory)).workflows.filter(({ waits }) => waits === undefined)
const languages: Record<string, SampleLanguage> = { sh: 'curl', ts: 'TypeScript', py: 'Python' }

let service: TestService
beforeAll(async () => {
  preparePython()
  service = await startTestService({ settings: { WORKFLOWS_DIR: directory } })
})
afterAll(async () => {
  await Promise.all([service?.stop(), stopPython()])
})

test.for(workflows.map(({ id, examples }) => [id, examples] as const))('%s', async ([id, examples]) => {
  const { key } = await service.createAccount()
  const headers = { Authorization: `Bearer ${key}` }
  const page = await fetch(`${service.executionUrl}/docs/workflows/${id}.md`, { headers })
  const markdown = await page.text()
  const samples = [...markdown.matchAll(/^```(sh|ts|py)\n(.*?)\n```$/gms)].filter(([, , code]) => code?.includes(id))
  expect(samples.map(([, language]) => language)).toEqual(['sh', 'ts', 'py'])
  for (const [, language = '', source = ''] of samples) {
    const temporary = temporaryDirectory()
    onTestFinished(() => removeDirectory(temporary))
    const options = { directory: temporary, environment: { API_KEY: key } }
    const sample = startSample({ lang: languages[language] as SampleLanguage, source }, options)
    expect([await sample.exited, sample.output]).toEqual([0, expect.stringMatching(/succeeded|failed|queued|running/)])
  }
  const list = await fetch(`${service.executionUrl}/v1/execution/runs`, { headers })
  const { data } = (await list.json()) as { data: { workflowId: string; variableData: unknown }[] }
  const expected = { workflowId: id, variableData: examples?.variables[0]?.masked }
  expect(data).toEqual(samples.map(() => expect.objectContaining(expected)))
})
