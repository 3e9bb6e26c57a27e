import { createExecutionClient, unwrap } from 'execution-service-client'

const { API_KEY = '', WORKER_ID = '' } = process.env
const client = createExecutionClient({ baseUrl: 'http://127.0.0.1:3001', apiKey: API_KEY })

const path = { workerId: WORKER_ID }
const worker = unwrap(
  await client.registerWorker({
    params: { path },
    body: {
      name: 'billing',
      language: 'Python 3.12',
      capacity: 4,
      deployed: false,
      workflows: [
        {
          id: 'send-invoice',
          version: '1.0.0',
          timeLimitSeconds: 300,
          deprecated: false,
          variables: {
            type: 'object',
            required: ['orderId'],
            properties: { orderId: { type: 'string' } },
          },
        },
      ],
    },
  }),
)
console.log(worker.id, worker.leaseSeconds)
