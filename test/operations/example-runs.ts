/** Runs, and a worker, that the requests of several tests have. */

/** A run that waits for an approval once it executes. */
export const approve = {
  path: { workflowId: 'approve' },
  query: 'delaySeconds=3600',
  body: { variableData: { amount: 5 } },
}

/** A worker outside of the service, with one workflow. */
export const newWorker = {
  name: 'billing',
  language: 'Python 3.12',
  capacity: 4,
  workflows: [
    {
      id: 'send-invoice',
      version: '1.0.0',
      browser: true,
      variables: {
        type: 'object',
        required: ['orderId'],
        properties: { orderId: { type: 'string' }, token: { type: 'string', writeOnly: true } },
        additionalProperties: false,
      },
      output: { type: 'object', required: ['invoice'], properties: { invoice: { type: 'string' } } },
      waits: {
        approval: { schema: { type: 'object', properties: { approved: { type: 'boolean' } } } },
        code: { schema: { type: 'string', writeOnly: true } },
      },
    },
  ],
}

/** A run for that worker. */
export const invoice = {
  path: { workflowId: 'send-invoice' },
  query: '',
  body: { variableData: { orderId: 'A-1001' } },
}
