/** Starts processes that do not end: a child, a child that leads a group, and a grandchild whose parent ends. */
import { execSync, spawn } from 'node:child_process'
import { defineWorkflow } from 'execution-service/workflow'

/** Writes the id of its process. */
const script = 'echo $$ >> "$FILE"; exec sleep 1000'

export default defineWorkflow({
  id: 'spread',
  version: '1.0.0',
  title: 'Spread',
  variables: {
    type: 'object',
    required: ['file', 'how'],
    properties: {
      file: { type: 'string' },
      how: { enum: ['return', 'exit', 'wait'] },
      /** Whether the processes have an environment that shows nothing of their origin. */
      hides: { type: 'boolean', default: false },
    },
  },
  output: {},
  async run({ variables: { file, how, hides } }) {
    const env = { ...(!hides && process.env), FILE: file }
    for (const detached of [false, true]) spawn('sh', ['-c', script], { env, detached, stdio: 'ignore' }).unref()
    execSync(`(${script}) >/dev/null 2>&1 &`, { env })
    if (how === 'exit') setTimeout(() => process.exit(), 300)
    if (how !== 'return') await new Promise(() => setInterval(() => {}, 1000))
  },
})
