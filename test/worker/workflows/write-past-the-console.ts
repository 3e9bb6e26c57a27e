/** Writes to the process's own output streams. */
import { defineWorkflow } from 'execution-service/workflow'

export default defineWorkflow({
  id: 'write-past-the-console',
  version: '1.0.0',
  title: 'Write past the console',
  variables: { type: 'object' },
  output: {},
  async run() {
    process.stdout.write('on standard output\n')
    process.stderr.write('on standard error\n')
  },
})
