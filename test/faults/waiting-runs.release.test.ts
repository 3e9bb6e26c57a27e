/** Runs that wait go on as before after deployments, a rotation of the encryption key, `backup` and `migrate-store`. */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, type TestContext, test } from 'vitest'
import { type ExecutionClient, type Run, unwrap } from '../../src/client/index.ts'
import { keyFilePath } from '../../src/storage/key-file.ts'
import { callerOf, clientOf, ownInstallation, queue, read, untilStatus } from '../e2e/caller.ts'
import { newDirectory } from '../support/domain.ts'
import { postgres } from '../support/postgres.ts'
import { emptyDirectory, restoreInstallation } from '../support/restore-installation.ts'
import { until } from '../support/service.ts'

const deployments = 10

async function workflowsOf(context: TestContext, version: string): Promise<string> {
  const directory = await newDirectory(context)
  const write = (id: string, waits: string, code: string) =>
    writeFileSync(
      join(directory, `${id}.mjs`),
      `export default { id: '${id}', version: '${version}', title: 'A test', variables: { type: 'object' }, output: {},
        waits: ${waits}, run: async ({ variables, step, waitFor, sleep, call }) => { ${code} } }\n`,
    )
  write(
    'ask',
    "{ answer: { schema: { type: 'integer' } } }",
    `const before = await step('before', () => 'once')
    const { value } = await waitFor('answer')
    await sleep('pause', { seconds: 3 })
    return { version: '${version}', before, value, doubled: await call('double', 'double', { value }) }`,
  )
  write('double', '{}', 'return 2 * variables.value')
  write('parent', '{}', `return { version: '${version}', child: await call('child', 'ask') }`)
  return directory
}

const untilWaitingFor = (client: ExecutionClient, run: Run, waitingFor: Run['waitingFor']) =>
  until(`run ${run.id} waits`, async () => (await read(client, run)).waitingFor === waitingFor)

const answer = async (client: ExecutionClient, runId: string, value: number) =>
  unwrap(await client.completeWait({ params: { path: { runId, name: 'answer' } }, body: { value } }))

async function childOf(client: ExecutionClient, { id }: Run): Promise<Run> {
  const [child] = unwrap(await client.listRuns({ params: { query: { parentRunId: id } } })).data
  if (!child) throw new Error('The run has called none.')
  return child as Run
}

interface Waiting {
  open: Run
  answered: Run
  early: Run
  parent: Run
}

/** Answers what is open, and expects each run to end as its own deployment ends it. */
async function expectToGoOn(client: ExecutionClient, { open, answered, early, parent }: Waiting): Promise<void> {
  await answer(client, open.id, 1)
  await answer(client, (await childOf(client, parent)).id, 4)
  const ended = (version: string, value: number) => ({ version, before: 'once', value, doubled: 2 * value })
  const expected: [Run, unknown][] = [
    [open, ended('1.0.0', 1)],
    [answered, ended('1.0.0', 2)],
    [early, ended(`1.0.${deployments}`, 3)],
    [parent, { version: '1.0.0', child: ended('1.0.0', 4) }],
  ]
  for (const [run, output] of expected)
    expect(await untilStatus(client, run, 'succeeded')).toMatchObject({ output, attempts: 1 })
}

test('runs that wait survive ten deployments, a new key, a restored backup, and a copy to PostgreSQL', {
  timeout: 600_000,
}, async (context) => {
  const installation = await ownInstallation(context, { WORKFLOWS_DIR: await workflowsOf(context, '1.0.0') })
  const service = await installation.start()
  const { account, client } = await callerOf(installation, service)
  const [open, answered, parent] = [
    (await queue(client, 'ask', {})).run,
    (await queue(client, 'ask', {})).run,
    (await queue(client, 'parent', {})).run,
  ]
  for (const run of [open, answered]) await untilWaitingFor(client, run, 'answer')
  await untilWaitingFor(client, parent, 'run')
  await untilWaitingFor(client, await childOf(client, parent), 'answer')
  let WORKFLOWS_DIR = ''
  for (let patch = 1; patch <= deployments; patch += 1) {
    WORKFLOWS_DIR = await workflowsOf(context, `1.0.${patch}`)
    expect(await installation.runCommand('workflows', 'deploy', WORKFLOWS_DIR)).toMatchObject({ code: 0, stderr: '' })
  }
  await service.stop()

  // Answers that no worker hands over yet.
  const api = await installation.startOnly('execution', { WORKFLOWS_DIR })
  const late = clientOf(api, account.key)
  const early = (await queue(late, 'ask', {})).run
  await answer(late, answered.id, 2)
  await answer(late, early.id, 3)
  expect(await installation.runCommand('rotate-encryption-key')).toMatchObject({ code: 0, stderr: '' })
  await api.stop()
  const keys = keyFilePath(installation.dataDirectory)
  writeFileSync(keys, `${readFileSync(keys, 'utf8').split('\n')[0]}\n`)
  const file = join(emptyDirectory(context), 'backup.db')
  expect(await installation.runCommand('backup', file)).toMatchObject({ code: 0, stderr: '' })
  await installation.closeAdministration()
  const url = await postgres.prepare({ empty: true })
  context.onTestFinished(() => postgres.remove(url))
  expect(await installation.runCommand('migrate-store', '--to', url)).toMatchObject({ code: 0, stderr: '' })

  const runs = { open, answered, early, parent }
  const DATA_DIR = installation.dataDirectory
  const restored = await restoreInstallation(context, file, { WORKFLOWS_DIR })
  await expectToGoOn(clientOf(await restored.start(), account.key), runs)
  const migrated = await ownInstallation(context, { WORKFLOWS_DIR, DATA_DIR, DATABASE_URL: url })
  await expectToGoOn(clientOf(await migrated.start(), account.key), runs)
})
