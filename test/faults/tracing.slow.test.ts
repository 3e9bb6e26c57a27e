/** Tracing must not disturb a service whose collector fails, nor load the SDK where it is off. */
import { existsSync, readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { startCollector } from '../support/collector.ts'
import { newDirectory } from '../support/domain.ts'
import { until } from '../support/service.ts'
import { startTwoStepService } from '../support/two-step-service.ts'

test('each process logs one warning when the collector rejects its spans, and runs succeed', async (context) => {
  const collector = await startCollector(context, 400)
  const { service, run } = await startTwoStepService(context, { OTEL_EXPORTER_OTLP_ENDPOINT: collector.url })
  const warnings = () => service.log.filter(({ msg }) => msg.includes('OTEL_EXPORTER_OTLP_ENDPOINT'))
  await until('each process has exported twice', async () => {
    expect(await run()).toMatchObject({ status: 200, run: { status: 'succeeded' } })
    return collector.requests() >= 4 && warnings().length >= 2
  })
  expect(await service.stop()).toMatchObject({ code: 0 })
  const processes = warnings().map(({ pid }) => pid)
  expect(processes).toHaveLength(2)
  expect(new Set(processes).size).toBe(2)
})

test('without a collector no process loads the OpenTelemetry SDK', async (context) => {
  const loaded = await newDirectory(context)
  const watched = (name: string) => ({
    NODE_OPTIONS: `--import=${new URL('../support/loaded-modules.ts', import.meta.url)}`,
    LOADED_MODULES: `${loaded}/${name}`,
  })
  const collector = await startCollector(context)
  const off = await startTwoStepService(context, watched('off'))
  expect(await off.run()).toMatchObject({ run: { status: 'succeeded' } })
  expect(existsSync(`${loaded}/off`)).toBe(false)
  // The counterpart: with a collector, both processes load it.
  await startTwoStepService(context, { ...watched('on'), OTEL_EXPORTER_OTLP_ENDPOINT: collector.url })
  const processes = readFileSync(`${loaded}/on`, 'utf8').matchAll(/^(\d+) /gm)
  expect(new Set([...processes].map(([, pid]) => pid)).size).toBe(2)
})
