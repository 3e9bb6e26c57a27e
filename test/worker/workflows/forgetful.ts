/** Asks for a browser without `browser: true`, which only JavaScript allows. */
import { type BrowserRunContext, defineWorkflow } from 'execution-service/workflow'

export default defineWorkflow({
  id: 'forgetful',
  version: '1.0.0',
  title: 'Forget to say that it uses a browser',
  variables: { type: 'object' },
  output: {},
  async run(context) {
    await (context as BrowserRunContext<object>).browser()
    return null
  },
})
