/** The command line: arguments in, exit code out. Each command's module is loaded when it is called. */
import { enableCompileCache } from 'node:module'
import { resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Command } from 'commander'
import packageJson from '../package.json' with { type: 'json' }

// Shares compiled code between starts and child processes. It saves start-up time, and the 18 MB that each process
// otherwise needs to strip types. Executors run in other directories.
const cache = fileURLToPath(new URL('../node_modules/.cache/node', import.meta.url))
enableCompileCache(cache)
process.env.NODE_COMPILE_CACHE = resolve(process.env.NODE_COMPILE_CACHE ?? cache)

const program = new Command('execution-service')
  .description('Queues remote runs of workflows over an HTTP API.')
  .version(packageJson.version)
  .option('--env-file <file>', 'take settings from a file too, such as the environment file of a systemd unit')
  .hook('preAction', async () => {
    const { envFile } = program.opts<{ envFile?: string }>()
    if (envFile === undefined) return
    Object.assign(process.env, (await import('./config/environment-file.ts')).readEnvironmentFile(envFile))
  })

const accountOption = ['--account <id>', 'the account, if there are several'] as const
const environmentOption = [
  '--environment <name>',
  'the environment, if the account has several; by default its first',
] as const
const urlOption = [
  '--url <url>',
  'the Execution API of a service; API_KEY has the key, which decides the account',
] as const
const jsonOption = ['--json', 'print JSON'] as const

program
  .command('start')
  .description('serve the dashboard and both APIs, and run one worker')
  .option(
    '--only <roles>',
    'limit this process to roles: execution, browser-context, dashboard, worker (comma-separated or repeated)',
    (roles: string, before: string[]) => [...before, roles],
    [],
  )
  .option('--allow-breaking', 'deploy WORKFLOWS_DIR even if it breaks callers of its workflows')
  .option('--watch', 'deploy WORKFLOWS_DIR again whenever a file in it is saved')
  .action(async (options) => (await import('./commands/start.ts')).start(options))

program
  .command('worker')
  .description('run an additional worker')
  .option('--url <url>', 'reach the service over HTTP at the address of its Execution API; API_KEY has the key')
  .action(async ({ url }) => {
    if (url === undefined) return (await import('./commands/start.ts')).worker()
    return (await import('./commands/remote-worker.ts')).remoteWorker(url)
  })

program
  .command('doctor')
  .description('check the installation and explain how to fix problems')
  .option(...jsonOption)
  .action(async (options) => (await import('./commands/doctor/doctor.ts')).doctor(options))

program
  .command('init')
  .description('make a project: a workflow, its test, and the service that executes it')
  .argument('<directory>', 'a new or an empty directory')
  .option('--no-install', 'do not run `npm install` in it')
  .action(async (directory, options) => (await import('./commands/project/init.ts')).initProject(directory, options))

program
  .command('mock')
  .description('serve Prism on both documents: it validates requests and responds with examples')
  .option('--workflows <directory>', 'with --simulate: its workflows; by default the examples')
  .option('--simulate', 'serve the service itself instead, in memory and by a clock that you set')
  .option('--scenarios <file>', 'with --simulate: what runs do')
  .option('--speed <number>', 'with --simulate: simulated seconds in a second; 0: the clock stands still (default: 1)')
  .option('--now <time>', 'with --simulate: the time at which it begins (default: the present)')
  .option('--seed <text>', 'with --simulate: the same seed, times and requests lead to the same responses')
  .action(async (options) => (await import('./commands/mock.ts')).mock(options))

program
  .command('check-consumer')
  .description('check a program that calls the service or gets its webhooks, in situations that happen in production')
  .argument('[command...]', 'starts the program; write it after --')
  .option(
    '--webhook <url>',
    'where the program gets webhooks; the command keeps running, and WEBHOOK_SECRET has the secret',
  )
  .option('--workflows <directory>', 'the workflows that the program uses; by default the examples')
  .option('--scenario <file>', 'what one use of the program is, and how to see that its work was done')
  .option('--reporter <name>', 'text, junit, sarif or json', 'text')
  .option('--only <ids>', 'check these situations only (comma-separated)')
  .option('--seed <text>', 'the same seed leads to the same report', 'seed')
  .action(async (command, options) => (await import('./commands/check-consumer.ts')).checkCommand(command, options))

const browser = program.command('browser').description('install the browser that workflows use')

browser
  .command('install')
  .description('install a Chromium for this user, unless one is found (70 MB)')
  .action(async () => (await import('./commands/browser.ts')).installBrowser())

const keys = program.command('keys').description('create, list and delete API keys')

keys
  .command('create')
  .description('create an API key and print it, once')
  .requiredOption('--name <name>', 'what the key is for')
  .option('--scopes <scopes>', 'limit the key to these scopes (comma-separated)')
  .option('--workflows <ids>', 'restrict the key to these workflows (comma-separated); it needs scopes')
  .option('--expires-in <time>', 'let the key expire after a time, such as 12h or 90d')
  .option(...accountOption)
  .option(...environmentOption)
  .option(...jsonOption)
  .action(async (options) => (await import('./commands/keys.ts')).createKey(options))

keys
  .command('list')
  .description('list API keys')
  .option(...accountOption)
  .option(...environmentOption)
  .option(...jsonOption)
  .action(async (options) => (await import('./commands/keys.ts')).listKeys(options))

keys
  .command('delete')
  .description('delete an API key; requests with it are refused from then on')
  .argument('<id>', "the key's id, from `keys list`")
  .option(...accountOption)
  .option(...environmentOption)
  .action(async (id, options) => (await import('./commands/keys.ts')).deleteKey(id, options))

for (const kind of ['secret', 'setting'] as const) {
  const values = program.command(`${kind}s`).description(`store, list and delete ${kind}s, which workflows declare`)

  values
    .command('put')
    .description(`store a ${kind}; its value comes from the standard input`)
    .argument('<name>', 'capital letters, digits and underscores')
    .option(...accountOption)
    .option(...environmentOption)
    .action(async (name, options) => (await import('./commands/values.ts')).putValue(kind, name, options))

  values
    .command('list')
    .description(kind === 'secret' ? 'list secrets, without their values' : 'list settings')
    .option(...accountOption)
    .option(...environmentOption)
    .option(...jsonOption)
    .action(async (options) => (await import('./commands/values.ts')).listValues(kind, options))

  values
    .command('delete')
    .description(`delete a ${kind}; later attempts do not get it`)
    .argument('<name>')
    .option(...accountOption)
    .option(...environmentOption)
    .action(async (name, options) => (await import('./commands/values.ts')).deleteValue(kind, name, options))
}

const accounts = program
  .command('accounts')
  .description('create, list, export and delete accounts, and their environments')

accounts
  .command('create')
  .description('create an account')
  .requiredOption('--name <name>', 'its display name')
  .option('--scopes', 'let its API keys be limited to scopes')
  .option(...jsonOption)
  .action(async (options) => (await import('./commands/accounts.ts')).createAccount(options))

accounts
  .command('list')
  .description('list accounts')
  .option(...jsonOption)
  .action(async (options) => (await import('./commands/accounts.ts')).listAccounts(options))

accounts
  .command('export')
  .description('write everything that an account has to a directory, as JSON lines and files')
  .argument('<directory>', 'a new directory')
  .option(...accountOption)
  .option(...environmentOption)
  .option('--secrets', 'also secrets, cookies and results of steps, in plain text')
  .option(...jsonOption)
  .action(async (directory, options) =>
    (await import('./commands/account-data.ts')).exportAccountData(directory, options),
  )

accounts
  .command('delete')
  .description('delete an account with everything that it has, and its environments; the service may be running')
  .option(...accountOption)
  .option('--confirm <name>', "the account's name")
  .option('--receipt <file>', 'write what was deleted to a file, as JSON')
  .option(...jsonOption)
  .action(async (options) => (await import('./commands/account-data.ts')).deleteAccountData(options))

const environments = accounts
  .command('environments')
  .description('add, list and remove environments of an account, such as staging')

environments
  .command('add')
  .description(
    'add an environment, with runs, deployments, schedules, secrets, contexts and keys apart from the others',
  )
  .argument('<name>', 'lower-case letters, digits and hyphens')
  .option('--first <name>', 'how the first environment is called when a second one is added (default: production)')
  .option(...accountOption)
  .option(...jsonOption)
  .action(async (name, options) => (await import('./commands/environments.ts')).addEnvironment(name, options))

environments
  .command('list')
  .description('list the environments of an account')
  .option(...accountOption)
  .option(...jsonOption)
  .action(async (options) => (await import('./commands/environments.ts')).listEnvironments(options))

environments
  .command('remove')
  .description('delete an environment with everything that it has; the service may be running')
  .argument('<name>', 'any but the first one')
  .option(...accountOption)
  .option('--confirm <name>', 'the same name')
  .option('--receipt <file>', 'write what was deleted to a file, as JSON')
  .option(...jsonOption)
  .action(async (name, options) => (await import('./commands/environments.ts')).removeEnvironment(name, options))

const users = program.command('users').description('list users, create sign-in links and remove second factors')

users
  .command('list')
  .description('list the users of an account')
  .option(...accountOption)
  .option(...jsonOption)
  .action(async (options) => (await import('./commands/accounts.ts')).listUsers(options))

users
  .command('sign-in-link')
  .description('print a link that signs a user in once, for a forgotten password')
  .option('--email <email>', "the user; defaults to the account's first admin")
  .option(...accountOption)
  .option(...jsonOption)
  .action(async (options) => (await import('./commands/accounts.ts')).createSignInLink(options))

users
  .command('remove-second-factor')
  .description('remove the two-factor authentication of a user who has lost their device and recovery codes')
  .requiredOption('--email <email>', 'the user')
  .option(...accountOption)
  .action(async (options) => (await import('./commands/accounts.ts')).removeSecondFactor(options))

const workflows = program
  .command('workflows')
  .description('deploy, list, promote and roll back workflows, and make projects for them')

workflows
  .command('deploy')
  .description('check a directory of workflows and serve it; the service may be running')
  .argument('[directory]', 'by default WORKFLOWS_DIR')
  .option('--account <id>', 'the account that alone sees them; by default all accounts see them')
  .option('--environment <name>', 'an environment of the account')
  .option('--try', 'first run each workflow with its first example, and deploy nothing if one fails')
  .option('--allow-breaking', 'deploy even if it breaks callers, or lacks workflows that they call')
  .option(...urlOption)
  .option(...jsonOption)
  .action(async (directory, options) => {
    if (options.url !== undefined)
      return (await import('./commands/workflows-by-url.ts')).deployToUrl(directory, options)
    return (await import('./commands/workflows.ts')).deployWorkflows(directory, options)
  })

workflows
  .command('build')
  .description('print the bundle of a directory of workflows, for `createDeployment` of the API')
  .argument('[directory]', 'by default WORKFLOWS_DIR')
  .action(async (directory) => (await import('./commands/workflows-by-url.ts')).printBundle(directory))

workflows
  .command('list')
  .description('list the workflows that are deployed')
  .option('--account <id>', 'those that this account sees; by default all')
  .option('--environment <name>', 'an environment of the account')
  .option(...urlOption)
  .option(...jsonOption)
  .action(async (options) => {
    if (options.url !== undefined) return (await import('./commands/workflows-by-url.ts')).listAtUrl(options)
    return (await import('./commands/workflows.ts')).listWorkflows(options)
  })

workflows
  .command('promote')
  .description(
    'serve in one environment what another one serves, unless that breaks callers; the service may be running',
  )
  .requiredOption('--from <name>', 'the environment whose deployment is promoted')
  .requiredOption('--to <name>', 'the environment that serves it from then on')
  .option(...accountOption)
  .option('--allow-breaking', 'promote even if it breaks callers, or lacks workflows that they call')
  .option(...jsonOption)
  .action(async (options) => (await import('./commands/workflows.ts')).promoteWorkflows(options))

workflows
  .command('rollback')
  .description('serve the deployment before the current one again; the service may be running')
  .option('--account <id>', "the account's deployment; by default that of all accounts")
  .option('--environment <name>', 'an environment of the account')
  .option(...urlOption)
  .option(...jsonOption)
  .action(async (options) => {
    if (options.url !== undefined) return (await import('./commands/workflows-by-url.ts')).rollBackAtUrl(options)
    return (await import('./commands/workflows.ts')).rollbackWorkflows(options)
  })

workflows
  .command('init')
  .description('make a project for workflows: one workflow, its test, and what it takes to run both')
  .argument('<directory>', 'a new or an empty directory')
  .action(async (directory) => (await import('./commands/project/init.ts')).initProject(directory, { install: false }))

const runs = program.command('runs').description('list, show, follow, cancel, repeat and queue runs')

/** Options that all commands of runs have. */
const ofRuns = (command: Command): Command =>
  command
    .option(...accountOption)
    .option(...environmentOption)
    .option(...urlOption)
    .option(...jsonOption)
const several = (value: string, before: string[] = []) => [...before, value]

ofRuns(runs.command('list').description('list runs, newest first'))
  .option('--workflow <id>', 'only those of this workflow')
  .option('--status <status>', 'only those in this status; repeatable', several)
  .option('--tag <tag>', 'only those with this tag; repeatable, for any of them', several)
  .option('--limit <number>', 'at most this many', '20')
  .action(async (options) => (await import('./commands/runs.ts')).listRuns(options))

ofRuns(runs.command('show').description('show a run').argument('<id>', 'from `runs list`')).action(
  async (id, options) => (await import('./commands/runs.ts')).showRun(id, options),
)

ofRuns(
  runs
    .command('follow')
    .description('print what a run does until it ends; exits with 1 unless it succeeds')
    .argument('<id>', 'from `runs list`'),
).action(async (id, options) => (await import('./commands/runs.ts')).followRun(id, options))

ofRuns(runs.command('cancel').description('cancel a run').argument('<id>', 'from `runs list`')).action(
  async (id, options) => (await import('./commands/runs.ts')).cancelRun(id, options),
)

ofRuns(
  runs
    .command('rerun')
    .description('run a finished run again, with its variables and secrets')
    .argument('<id>', 'from `runs list`'),
)
  .option('--from-step <name>', 'keep the results of the steps before this one')
  .option('--follow', 'print what the new run does until it ends')
  .action(async (id, options) => (await import('./commands/runs.ts')).rerunRun(id, options))

ofRuns(runs.command('queue').description('queue a run').argument('<workflow>', 'its id, from `workflows list`'))
  .option('--variables <json>', 'a JSON object; @file reads a file, and - the standard input', '{}')
  .option('--tag <tag>', 'a tag of the run; repeatable', several)
  .option('--option <name=value>', 'an option of `queueRemoteRun`, such as delaySeconds=60; repeatable', several)
  .option('--follow', 'print what the run does until it ends')
  .action(async (workflow, options) => (await import('./commands/runs.ts')).queueRun(workflow, options))

program
  .command('rotate-encryption-key')
  .description('re-encrypt all encrypted data with a new key; the service may be running')
  .action(async () => (await import('./commands/rotate-encryption-key.ts')).rotateEncryptionKey())

program
  .command('backup')
  .description('write a snapshot of the store and its encryption key to one file; the service may be running')
  .argument('<file>', 'the file to create')
  .option('--without-key', 'leave out the encryption key')
  .option('--overwrite', 'replace the file if it exists')
  .action(async (file, options) => (await import('./commands/backup.ts')).backup(file, options))

program
  .command('restore')
  .description('restore a backup into the data directory; stop the service first')
  .argument('<file>', 'a file that `backup` has written')
  .option('--replace', 'replace the present store, which is kept under another name')
  .option('--unsigned', 'accept a backup that was written without a key')
  .action(async (file, options) => (await import('./commands/restore.ts')).restore(file, options))

program
  .command('migrate-store')
  .description('copy the embedded store to PostgreSQL and verify the copy; resumes when interrupted')
  .requiredOption('--to <url>', 'the database, such as postgres://user:password@host/database')
  .option('--serving', 'the service is running: let it refuse writes until this command is stopped')
  .action(async (options) => (await import('./commands/migrate-store.ts')).migrateStore(options))

const [{ exitOnError }, { hideSecrets }] = await Promise.all([
  import('./commands/output.ts'),
  import('./commands/hidden-environment.ts'),
])
hideSecrets()
await exitOnError(() => program.parseAsync())
