/** Measures how long deployments take: building, storing, and until a run executes the saved code. */
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openAdministration } from '../src/app.ts'
import { createExecutionClient } from '../src/client/index.ts'
import { readConfig } from '../src/config/config.ts'
import { operator } from '../src/domain/audit-log/audit-log.ts'
import { buildSnapshot } from '../src/domain/deployments/build-snapshot.ts'
import type { Deployments } from '../src/domain/deployments/deployments.ts'
import { median, print, table } from './figures.ts'
import { createKey, start, stop, withInstallation } from './single-service.ts'

const saves = 5
const examples = new URL('../examples/workflows', import.meta.url).pathname

/** A directory of so many workflows that share a module. The first one returns its version. */
function writeWorkflows(directory: string, count: number, version: string): void {
  mkdirSync(join(directory, 'lib'), { recursive: true })
  writeFileSync(join(directory, 'lib/shared.ts'), 'export const shared = (text: string) => `shared ${text}`\n')
  for (let number = 0; number < count; number += 1) writeWorkflow(directory, number, version)
}

function writeWorkflow(directory: string, number: number, version: string): void {
  const text = `import { defineWorkflow } from 'execution-service/workflow'
import { shared } from './lib/shared.ts'
export default defineWorkflow({
  id: 'workflow-${number}', version: '${version}', title: 'Workflow ${number}',
  variables: { type: 'object', additionalProperties: false, properties: {
    name: { type: 'string', maxLength: 100 }, size: { type: 'integer', minimum: 0 }, tags: { type: 'array', items: { type: 'string' } } } },
  output: { type: 'string' },
  run: () => (shared('${version}'), '${version}'),
})\n`
  writeFileSync(join(directory, `workflow-${number}.ts`), text)
}

interface Times {
  build: number
  store: number
  firstRun: number
}

/** Saves, deploys as `npm run dev` does, and queues runs until one executes the saved code. */
async function measureSave(
  deployments: Deployments,
  directory: string,
  save: () => void,
  isExecuted: () => Promise<boolean>,
): Promise<Times> {
  const savedAt = performance.now()
  save()
  const snapshot = await buildSnapshot(directory)
  const builtAt = performance.now()
  await deployments.deploy(snapshot, { accountId: null, by: operator, directory })
  const storedAt = performance.now()
  while (!(await isExecuted()));
  return { build: builtAt - savedAt, store: storedAt - builtAt, firstRun: performance.now() - savedAt }
}

export function deploying(): Promise<void> {
  return withInstallation(async (env) => {
    const running = await start(env)
    const client = createExecutionClient({ baseUrl: running.executionUrl, apiKey: await createKey(env) })
    const { deployments, close } = await openAdministration(readConfig(env))
    const directory = mkdtempSync(join(tmpdir(), 'bench-workflows-'))
    const output = async (workflowId: string) => {
      const params = { path: { workflowId }, header: { Prefer: 'wait=10' } }
      return (await client.queueRemoteRun({ params, body: { variableData: {} } })).data?.output
    }
    const rows = [['', 'built', 'stored', 'from saving to a run of the saved code']]
    const measure = async (name: string, save: (version: string) => void, path = directory) => {
      const times: Times[] = []
      for (let count = 0; count < saves; count += 1) {
        const version = `${name}.${count}`
        times.push(
          await measureSave(
            deployments,
            path,
            () => save(version),
            async () => (await output('workflow-0')) === version,
          ),
        )
      }
      const of = (member: keyof Times) => `${median(times.map((each) => each[member])).toFixed(0)} ms`
      rows.push([name, of('build'), of('store'), of('firstRun')])
    }
    try {
      await measure('1 workflow', (version) => writeWorkflows(directory, 1, version))
      await measure('200 workflows, all saved', (version) => writeWorkflows(directory, 200, version))
      await measure('200 workflows, one saved', (version) => writeWorkflow(directory, 0, version))
      const copy = join(new URL('..', import.meta.url).pathname, 'node_modules/.cache/bench-examples')
      cpSync(examples, copy, { recursive: true })
      mkdirSync(join(copy, 'lib'), { recursive: true })
      writeFileSync(join(copy, 'lib/shared.ts'), 'export const shared = (text: string) => text\n')
      await measure('the 7 examples and one more', (version) => writeWorkflow(copy, 0, version), copy)
      rmSync(copy, { recursive: true })
      print(table(rows))
    } finally {
      rmSync(directory, { recursive: true })
      await close()
      await stop(running)
    }
  })
}
