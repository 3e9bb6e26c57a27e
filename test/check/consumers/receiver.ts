/** Ships an order when a run succeeds: a receiver of webhooks with Express. `FAULT` plants one mistake. */
import express from 'express'
import { verifyWebhook } from '../../../src/client/index.ts'

export async function openReceiver(fault: string, secret: string, wantedPort = 0) {
  const has = (...names: string[]) => names.includes(fault)
  const shipped = new Map<string, number>()
  const known = new Set<string>()
  const app = express()
  const limit = has('smallBodies') ? '100kb' : '5mb'
  app.use(
    express.text({
      type: has('exactType') ? (request) => request.headers['content-type'] === 'application/json' : '*/json',
      limit,
    }),
  )
  app.post('/hooks', async (request, response) => {
    const text = typeof request.body === 'string' ? request.body : ''
    let event: { type: string; data: { runId: string } }
    try {
      const signed = has('parsesFirst') ? JSON.stringify(JSON.parse(text)) : text
      const headers = { ...request.headers }
      if (has('ignoresTime')) headers['webhook-timestamp'] = headers['webhook-timestamp'] ?? '0'
      event =
        has('noVerification') || (has('ignoresTime') && Number(headers['webhook-timestamp']) > 0 && isOld(headers))
          ? JSON.parse(text)
          : await verifyWebhook(signed, firstSignature(headers, has('firstSignature')), secret)
    } catch {
      return void response.sendStatus(has('failsOnBad') ? 500 : 400)
    }
    const id = String(request.headers['webhook-id'])
    if (has('strictTypes') && !/^run\.(?:succeeded|failed|cancelled|waiting)$/.test(event.type))
      return void response.sendStatus(422)
    if (has('strictMembers') && Object.keys(event).length > 3) return void response.sendStatus(422)
    if (has('noRun') && !event.data.runId.startsWith('0')) return void response.sendStatus(204)
    const isNew = !known.has(id)
    if (has('slowCheck')) await new Promise((resolve) => setTimeout(resolve, 50))
    known.add(id)
    const isSuccess = event.type === 'run.succeeded' || (has('shipsAll') && event.type.startsWith('run.'))
    if (isSuccess && (isNew || has('noIds'))) shipped.set(event.data.runId, (shipped.get(event.data.runId) ?? 0) + 1)
    response.sendStatus(204)
  })
  app.get('/shipped/:runId', ({ params }, response) => void response.json({ shipped: shipped.get(params.runId) ?? 0 }))
  const server = app.listen(wantedPort, '127.0.0.1')
  await new Promise((resolve) => server.once('listening', resolve))
  const { port } = server.address() as { port: number }
  return {
    url: `http://127.0.0.1:${port}/hooks`,
    secret,
    done: async (runId: string) => shipped.get(runId) ?? 0,
    close: () => server.close(),
  }
}

type Headers = Record<string, string | string[] | undefined>

const isOld = (headers: Headers) => Math.abs(Date.now() / 1000 - Number(headers['webhook-timestamp'])) > 300

function firstSignature(headers: Headers, isOnly: boolean): Headers {
  return isOnly ? { ...headers, 'webhook-signature': String(headers['webhook-signature']).split(' ')[0] } : headers
}

if (import.meta.main) {
  const { WEBHOOK_SECRET = '', FAULT = '', PORT = '0' } = process.env
  await openReceiver(FAULT, WEBHOOK_SECRET, Number(PORT))
}
