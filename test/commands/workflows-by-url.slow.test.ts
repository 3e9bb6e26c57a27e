/** `workflows deploy`, `list` and `rollback` with `--url`, and the pipelines of the guide: from a machine that has neither the store nor its key. */
import { execFile, spawn } from 'node:child_process'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, type TestContext, test } from 'vitest'
import { parse } from 'yaml'
import { send } from '../operations/requests.ts'
import { newDirectory } from '../support/domain.ts'
import { main, startTestService, type TestAccount, type TestService } from '../support/service.ts'

let service: TestService
beforeAll(async () => {
  service = await startTestService()
})
afterAll(() => service.stop())

async function run(key: string, ...args: string[]) {
  const env = { PATH: process.env.PATH, NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE, API_KEY: key }
  const child = spawn(process.execPath, [main, 'workflows', ...args], { env, stdio: ['ignore', 'pipe', 'pipe'] })
  const ended = new Promise<number | null>((resolve) => child.once('close', resolve))
  const [stdout, stderr, code] = await Promise.all([text(child.stdout), text(child.stderr), ended])
  return { stdout, stderr, code }
}

async function newProject(context: TestContext) {
  const account: TestAccount = await service.createAccount()
  const directory = await newDirectory(context)
  const write = (members: string) => {
    const definition = `id: 'shout', title: 'Shout', output: {}, ${members}`
    return writeFile(join(directory, 'shout.ts'), `export default { ${definition} }\n`)
  }
  return { account, directory, write, url: ['--url', service.executionUrl] }
}

test('what is deployed from elsewhere executes, is refused when it breaks callers, and is rolled back', async (context) => {
  const { account, directory, write, url } = await newProject(context)
  await write("version: '1.0.0', variables: { type: 'object' }, run: async () => 'Ä'")
  const { value: key } = await account.createKey({ scopes: ['deployments:write', 'deployments:read'] })
  const first = await run(key, 'deploy', directory, ...url, '--json')
  expect(first.code, first.stderr).toBe(0)
  const deployed = JSON.parse(first.stdout)
  const workflows = [{ id: 'shout', version: '1.0.0', title: 'Shout' }]
  expect(deployed).toMatchObject({ changed: true, workflows })
  expect(JSON.parse((await run(key, 'deploy', directory, ...url, '--json')).stdout)).toMatchObject({
    deploymentId: deployed.deploymentId,
    changed: false,
  })
  const queued = await send(service, 'queueRemoteRun', account.key, {
    path: { workflowId: 'shout' },
    headers: { Prefer: 'wait=30' },
    body: { variableData: {} },
  })
  expect(queued.body).toMatchObject({ status: 'succeeded', deploymentId: deployed.deploymentId, output: 'Ä' })
  await write("version: '1.0.0', variables: { type: 'object', required: ['text'] }, run: async () => 1")
  const refused = await run(key, 'deploy', directory, ...url)
  expect(refused).toMatchObject({ code: 1, stdout: '' })
  expect(refused.stderr).toMatch(/^The workflow shout still has the version 1\.0\.0, but breaks its callers:/)
  expect(refused.stderr).toMatch(/Nothing was deployed\.\n$/)
  const allowed = await run(key, 'deploy', directory, ...url, '--allow-breaking')
  expect(allowed).toMatchObject({ code: 0, stdout: expect.stringMatching(/^Deployed .* for the account of the key: /) })
  expect((await run(account.key, 'list', ...url)).stdout).toMatch(/^shout +1\.0\.0/m)
  const back = await run(key, 'rollback', ...url, '--json')
  expect(JSON.parse(back.stdout)).toEqual({ deploymentId: deployed.deploymentId })
  // Before the first one came the deployment for all accounts.
  const returned = await run(key, 'rollback', ...url, '--json')
  expect(JSON.parse(returned.stdout)).toEqual({ deploymentId: deployed.previousDeploymentId })
  const last = await run(key, 'rollback', ...url)
  expect(last).toMatchObject({ code: 1, stderr: expect.stringMatching(/^The account has no earlier deployment/) })
})

test('says what is wrong with the key, the directory and the options', async (context) => {
  const { account, directory, write, url } = await newProject(context)
  await write("version: '', variables: { type: 'object' }, run: async () => 1")
  const { value: scoped } = await account.createKey({ scopes: ['runs:read'] })
  const failed = async (key: string, ...args: string[]) => {
    const { code, stderr } = await run(key, ...args)
    return [code, stderr.trim()]
  }
  const list = ['list', ...url]
  expect(await failed('', ...list)).toEqual([
    1,
    'API_KEY is not set: it must have an API key with the scope workflows:read.',
  ])
  expect(await failed(crypto.randomUUID(), ...list)).toEqual([1, 'The service does not accept the key in API_KEY.'])
  expect(await failed(scoped, ...list)).toEqual([1, 'The key in API_KEY lacks the scope workflows:read.'])
  const place =
    /shout\.ts:1 is not a valid workflow: version must be a string of 1 to 100 characters, without U\+0000\. Nothing was deployed\.$/
  expect(await failed(account.key, 'deploy', directory, ...url)).toEqual([1, expect.stringMatching(place)])
  const withAccount = await failed(account.key, 'deploy', directory, ...url, '--account', account.id)
  expect(withAccount).toEqual([1, 'Leave out --account: the key in API_KEY decides the account.'])
})

/** A job of GitHub Actions has `steps`, one of GitLab a `script`. */
interface Job {
  steps?: { run?: string }[]
  script?: string[]
}

/** The commands of each job, by the files of the guide. */
async function pipelines(): Promise<[file: string, Record<string, string[]>][]> {
  const guide = await readFile('docs/guides/deploying-workflows.md', 'utf8')
  const blocks = [...guide.matchAll(/^```yaml\n# (\S+)\n(.*?)^```/gms)]
  return blocks.map(([, file = '', yaml = '']) => {
    const document = parse(yaml)
    const jobs: [string, Job][] = Object.entries(document.jobs ?? document)
    const commands = jobs.flatMap(([name, { steps, script }]) => {
      const lines = script ?? steps?.flatMap(({ run }) => run ?? [])
      return lines ? [[name, lines] as const] : []
    })
    return [file, Object.fromEntries(commands)]
  })
}

/** A project of an author, with the service among its packages. */
async function projectWithCommand(context: TestContext) {
  const project = await newDirectory(context)
  await mkdir(join(project, 'node_modules/.bin'), { recursive: true })
  const command = `#!/bin/sh\nexec '${process.execPath}' '${main}' "$@"\n`
  await writeFile(join(project, 'node_modules/.bin/execution-service'), command, { mode: 0o755 })
  await writeFile(join(project, 'package.json'), '{}')
  await mkdir(join(project, 'workflows'))
  const definition = `id: 'shout', title: 'Shout', output: {}, variables: { type: 'object' }, run: async () => 1`
  const write = (version: string) =>
    writeFile(join(project, 'workflows/shout.ts'), `export default { version: '${version}', ${definition} }\n`)
  return { project, write }
}

test('the pipelines of the guide build once, deploy, promote and roll back', async (context) => {
  const files = await pipelines()
  expect(files.map(([file]) => file)).toEqual(['.github/workflows/deploy.yml', '.gitlab-ci.yml'])
  for (const [, jobs] of files) {
    const { project, write } = await projectWithCommand(context)
    const accounts = { staging: await service.createAccount(), production: await service.createAccount() }
    const execute = async (job: string, environment?: keyof typeof accounts) => {
      const scopes = ['deployments:write', 'deployments:read'] as const
      const key = environment && (await accounts[environment].createKey({ scopes: [...scopes] })).value
      const given = { ...(key && { API_KEY: key, EXECUTION_URL: service.executionUrl }) }
      const env = { PATH: process.env.PATH, HOME: project, npm_config_offline: 'true', ...given }
      // The packages are there.
      const commands = (jobs[job] ?? []).filter((command) => !['npm ci', 'npm test'].includes(command))
      expect(commands).toHaveLength(1)
      await promisify(execFile)('bash', ['-eo', 'pipefail', '-c', commands.join('\n')], { cwd: project, env })
    }
    const versions = async () => {
      const list = async ({ key }: TestAccount) =>
        (await send(service, 'listWorkflows', key)).body.data.find(({ id }: { id: string }) => id === 'shout')?.version
      return [await list(accounts.staging), await list(accounts.production)]
    }
    for (const version of ['1.0.0', '1.1.0']) {
      await write(version)
      await execute('build')
      await execute('staging', 'staging')
      await execute('production', 'production')
      expect(await versions()).toEqual([version, version])
    }
    const rollback = (environment: string) => ('rollback' in jobs ? 'rollback' : `rollback ${environment}`)
    await execute(rollback('production'), 'production')
    expect(await versions()).toEqual(['1.1.0', '1.0.0'])
    await execute(rollback('staging'), 'staging')
    expect(await versions()).toEqual(['1.0.0', '1.0.0'])
  }
})
