/** The command line: arguments in, exit code out. Each command is in command-line/, and loaded when it is called. */
import { enableCompileCache } from 'node:module'
import { fileURLToPath } from 'node:url'
import { Command } from 'commander'

// Compiled code is kept between starts, for this process and those below it: it saves time, and the 18 MB that each
// process needs to strip types by itself.
const cache = fileURLToPath(new URL('../node_modules/.cache/node', import.meta.url))
enableCompileCache(cache)
process.env.NODE_COMPILE_CACHE ??= cache

const program = new Command('execution-service').description('Queues remote runs of workflows over an HTTP API.')

program
  .command('start')
  .description('serve the dashboard and both APIs, and run one worker')
  .option(
    '--only <roles>',
    'do only some of it: execution, browser-context, dashboard, worker; several with commas, or repeated',
    (given: string, before: string[]) => [...before, given],
    [],
  )
  .action(async (options) => (await import('./commands/start.ts')).start(options))

program
  .command('worker')
  .description('run one more worker on the same data directory')
  .action(async () => (await import('./commands/worker.ts')).worker())

program
  .command('doctor')
  .description('check the installation, and say what is wrong and what to do; works while the service runs')
  .option('--json', 'print JSON')
  .action(async (options) => (await import('./commands/doctor.ts')).doctor(options))

const keys = program.command('keys').description('create, list and delete API keys; works while the service runs')

keys
  .command('create')
  .description('create an API key and show its value, once')
  .requiredOption('--name <name>', 'what the key is for')
  .option('--scopes <scopes>', 'limit it to scopes, separated by commas')
  .option('--expires-in <time>', 'end it after a time such as 12h or 90d')
  .option('--account <id>', 'the account, where there are several')
  .option('--json', 'print JSON')
  .action(async (options) => (await import('./commands/keys.ts')).createKey(options))

keys
  .command('list')
  .description('list API keys')
  .option('--account <id>', 'the account, where there are several')
  .option('--json', 'print JSON')
  .action(async (options) => (await import('./commands/keys.ts')).listKeys(options))

keys
  .command('delete')
  .description('delete an API key; it is refused from then on')
  .argument('<id>', 'the id that `keys list` shows')
  .option('--account <id>', 'the account, where there are several')
  .action(async (id, options) => (await import('./commands/keys.ts')).deleteKey(id, options))

const accounts = program.command('accounts').description('create and list accounts')

accounts
  .command('create')
  .description('create an account')
  .requiredOption('--name <name>', 'what it is called')
  .option('--scopes', 'let its API keys be limited to scopes')
  .option('--json', 'print JSON')
  .action(async (options) => (await import('./commands/accounts.ts')).createAccount(options))

accounts
  .command('list')
  .description('list accounts')
  .option('--json', 'print JSON')
  .action(async (options) => (await import('./commands/accounts.ts')).listAccounts(options))

const users = program.command('users').description('list users, and let them in without a password')

users
  .command('list')
  .description('list the users of an account')
  .option('--account <id>', 'the account, where there are several')
  .option('--json', 'print JSON')
  .action(async (options) => (await import('./commands/users.ts')).listUsers(options))

users
  .command('sign-in-link')
  .description('print a link that signs a user in, once: for whoever has forgotten the password')
  .option('--email <email>', 'the user; the owner of the account unless given')
  .option('--account <id>', 'the account, where there are several')
  .option('--json', 'print JSON')
  .action(async (options) => (await import('./commands/users.ts')).makeSignInLink(options))

program
  .command('rotate-encryption-key')
  .description('encrypt everything that is stored encrypted with a new key; works while the service runs')
  .action(async () => (await import('./commands/rotate-encryption-key.ts')).rotateEncryptionKey())

program
  .command('backup')
  .description('write the store and its encryption key to one file, as they are now; works while the service runs')
  .argument('<file>', 'the file to make')
  .option('--without-key', 'leave the encryption key out of it')
  .option('--overwrite', 'put it in the place of a file that is there')
  .action(async (file, options) => (await import('./commands/backup.ts')).backup(file, options))

program
  .command('restore')
  .description('put a backup into the data directory; nothing may run on that meanwhile')
  .argument('<file>', 'what `backup` has made')
  .option('--replace', 'put it in the place of the store that is there, which is kept beside it')
  .action(async (file, options) => (await import('./commands/restore.ts')).restore(file, options))

const { exitWithError: explained } = await import('./commands/exit-with-error.ts')
await explained(() => program.parseAsync())
