/** `workflows deploy --try`: what fails with its example is not deployed. */
import { expect, test } from 'vitest'
import { newInstallation } from '../support/installation.ts'
import { writeModules } from '../support/worker.ts'

const module = (id: string, run: string) => `import { defineWorkflow } from 'execution-service/workflow'
export default defineWorkflow({
  id: '${id}', version: '1.0.0', title: '${id}', output: { type: 'string' },
  variables: { type: 'object', properties: { name: { type: 'string' } }, examples: [{ name: 'Ada' }, { name: 'Eve' }] },
  run: ${run},
})
`
const greet = module('greet', "({ variables }) => { if (variables.name !== 'Ada') throw Error('Eve'); return 'Hello' }")

test('runs each workflow with its first example, and names those that fail, before anything is deployed', async (context) => {
  const installation = await newInstallation()
  context.onTestFinished(() => installation.remove())
  const failing = await writeModules(context, {
    'greet.mjs': greet,
    'throws.mjs': module('throws', "() => { throw new TypeError('No font.') }"),
    'exits.mjs': module('exits', '() => process.exit(3)'),
    'number.mjs': module('number', '() => 7'),
  })
  const refused = await installation.runCommand('workflows', 'deploy', failing, '--try')
  expect(refused).toEqual({
    code: 1,
    stdout: 'Tried greet.\n',
    stderr: `The workflow exits failed with its first example: Its process ended (exit code 3).
The workflow number failed with its first example: OutputInvalid: The output does not match its schema: the output must be string
The workflow throws failed with its first example: TypeError: No font.
Nothing was deployed.
`,
  })
  const listed = await installation.runCommand('workflows', 'list', '--json')
  expect(JSON.parse(listed.stdout)).toEqual([])

  const directory = await writeModules(context, { 'greet.mjs': greet })
  const deployed = await installation.runCommand('workflows', 'deploy', directory, '--try')
  expect(deployed).toMatchObject({ code: 0, stderr: '' })
  expect(deployed.stdout).toMatch(/^Tried greet\.\nDeployed .*\n {2}greet 1\.0\.0 is new\n$/)
})

test('a run that waits gets examples of answers and of outputs', async (context) => {
  const installation = await newInstallation()
  context.onTestFinished(() => installation.remove())
  const waits = `{ code: { schema: { type: 'string', examples: ['AB-7'] } }, odd: { schema: { type: 'string', pattern: '^x[0-9]' } } }`
  const run = `async ({ sleep, waitFor, call }) => {
    await sleep('month', { days: 30 })
    const [code, odd, greeting] = [await waitFor('code'), await waitFor('odd'), await call('greeting', 'greet', { name: 'Ada' })]
    if (odd.ok) throw Error('An answer without a valid example came.')
    return code.value + greeting
  }`
  const waiting = module('waiting', run).replace('  run:', `  waits: ${waits},\n  run:`)
  const directory = await writeModules(context, { 'greet.mjs': greet, 'waiting.mjs': waiting })
  const deployed = await installation.runCommand('workflows', 'deploy', directory, '--try')
  expect(deployed).toMatchObject({ code: 0, stderr: '', stdout: expect.stringContaining('Tried waiting.') })
  const lonely = await writeModules(context, { 'waiting.mjs': waiting })
  const refused = await installation.runCommand('workflows', 'deploy', lonely, '--try', '--allow-breaking')
  expect(refused.stderr).toContain('No workflow of the directory has the ID "greet" and an example of its output.')
})
