/** Writes to the process's own output streams. */
import { defineWorkflow } from 'execution-service/workflow'

export default defineWorkflow({
  id: 'write-past-the-console',
  version: '1.0.0',
  title: 'Write past the console',
  variables: { type: 'object' },
  output: {},
  async run() {
    await new Promise((resolve) => process.stdout.write('on standard output\n', resolve))
    await new Promise((resolve) => process.stderr.write('on standard error\n', resolve))
    // Output arrives on other pipes than messages: give it time.
    await new Promise((resolve) => setTimeout(resolve, 500))
  },
})
