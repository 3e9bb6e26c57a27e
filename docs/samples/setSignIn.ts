import { createBrowserContextClient, unwrap } from 'execution-service-client'

const { API_KEY = '', BROWSER_CONTEXT_ID = '' } = process.env
const client = createBrowserContextClient({ baseUrl: 'http://127.0.0.1:3002', apiKey: API_KEY })

const signIn = unwrap(
  await client.setSignIn({
    params: { path: { browserContextId: BROWSER_CONTEXT_ID } },
    body: {
      workflowId: 'sign-in',
      variableData: { user: 'ada', password: 'correct horse battery staple' },
      totpSeed: 'JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP',
      checkEverySeconds: 3600,
    },
  }),
)
console.log(signIn.status)
