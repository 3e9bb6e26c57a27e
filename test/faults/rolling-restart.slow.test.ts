/** Services behind a proxy without retries are restarted one after the other, unnoticed by callers. */
import { expect, test } from 'vitest'
import { clientOf, ownInstallation, queue, untilStatus } from '../e2e/caller.ts'
import { type LoadBalancer, startLoadBalancer } from '../support/load-balancer.ts'
import { until } from '../support/service.ts'
import { usesPostgres } from '../support/service-storage.ts'
import { record } from './figures.ts'

const callersCount = 12

test('a rolling restart under load resets no connection, refuses no request, and loses nothing', async (context) => {
  // Much longer than the proxy takes to notice.
  const installation = await ownInstallation(context, {
    DRAIN_SECONDS: '5',
    SHUTDOWN_SECONDS: '10',
    RATE_LIMIT_PER_MINUTE: '0',
  })
  const front = await startLoadBalancer()
  context.onTestFinished(front.close)
  const started = async () => {
    const service = await installation.start()
    front.add(service)
    await until('the front uses the service', () => front.uses(service))
    return service
  }
  const services = await Promise.all([started(), started()])
  const load = startLoad(front, (await installation.createAccount()).key)
  for (const service of services) {
    await load.untilMore(100)
    expect(await service.stop()).toEqual({ code: 0, signal: null })
    await load.untilMore(100)
    await started()
  }
  const { acknowledged, problems } = await load.stop()
  record({
    promise: 'P4',
    store: usesPostgres ? 'PostgreSQL' : 'embedded',
    fault: `rolling restart of ${services.length} services under load`,
    figures: { acknowledged: acknowledged.length, refused: problems.length },
    remark: `${front.failures.length} connections reset`,
  })
  expect(front.failures).toEqual([])
  expect(problems).toEqual([])
  expect(front.reused(), 'connections are kept').toBeGreaterThan(acknowledged.length)
  for (const id of acknowledged) await untilStatus(load.client, { id }, 'succeeded')
})

/** Callers that queue and read runs, without pauses or retries. */
function startLoad({ url }: LoadBalancer, key: string) {
  const client = clientOf({ executionUrl: url }, key, { retries: 0 })
  const acknowledged: string[] = []
  const problems: string[] = []
  let isOver = false
  const caller = async () => {
    while (!isOver) {
      try {
        const { run, response } = await queue(client, 'greet', { name: 'Ada' })
        if (response.status === 202) acknowledged.push(run.id)
        const { response: reading } = await client.getRun({ params: { path: { runId: run.id } } })
        if (reading.status !== 200) problems.push(`reading: ${reading.status}`)
      } catch (error) {
        problems.push(String(error))
      }
    }
  }
  const callers = Array.from({ length: callersCount }, caller)
  return {
    client,
    untilMore(count: number) {
      const wanted = acknowledged.length + count
      return until(`${count} more runs are acknowledged`, () => acknowledged.length >= wanted)
    },
    async stop() {
      isOver = true
      await Promise.all(callers)
      return { acknowledged, problems }
    },
  }
}
