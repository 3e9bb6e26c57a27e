/** OpenTelemetry's SDK, exporting traces by OTLP over HTTP. Loaded only when tracing is on. */
import { context, propagation, trace } from '@opentelemetry/api'
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks'
import { W3CTraceContextPropagator } from '@opentelemetry/core'
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http'
import {
  defaultResource,
  detectResources,
  envDetector,
  hostDetector,
  resourceFromAttributes,
  serviceInstanceIdDetector,
} from '@opentelemetry/resources'
import { BatchSpanProcessor, type SpanExporter, TracerProvider } from '@opentelemetry/sdk-trace'
import type { Logger } from 'pino'
import packageJson from '../../package.json' with { type: 'json' }
import type { Tracing } from './tracing.ts'

/** How long spans are batched. The SDK's default of 5 s delays the trace of a request that was just made. */
const batchMilliseconds = 1000
/** How long an unresponsive collector may delay the end of the process. */
const closeMillisecondsMax = 3000

/** The exporter reads the OTEL_EXPORTER_OTLP_… variables itself: address, headers and timeouts. */
export function registerSdk(serviceName: string, log: Logger): Tracing {
  const detected = detectResources({ detectors: [envDetector, hostDetector, serviceInstanceIdDetector] })
  const service = resourceFromAttributes({ 'service.name': serviceName, 'service.version': packageJson.version })
  const exporter = warnOnce(new OTLPTraceExporter(), log)
  const provider = new TracerProvider({
    resource: defaultResource().merge(detected).merge(service),
    spanProcessors: [new BatchSpanProcessor({ exporter, scheduledDelayMillis: batchMilliseconds })],
  })
  trace.setGlobalTracerProvider(provider)
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable())
  propagation.setGlobalPropagator(new W3CTraceContextPropagator())
  return {
    async close() {
      let timer: NodeJS.Timeout | undefined
      const timeout = new Promise<void>((resolve) => {
        timer = setTimeout(resolve, closeMillisecondsMax)
      })
      await Promise.race([provider.shutdown().catch(() => {}), timeout])
      clearTimeout(timer)
    },
  }
}

/** Logs the first of consecutive failed exports. Spans of failed exports are dropped. */
function warnOnce(exporter: SpanExporter, log: Logger): SpanExporter {
  let isWarned = false
  return {
    export(spans, done) {
      exporter.export(spans, (result) => {
        const failed = result.error !== undefined
        // The message is left out: it may contain the address, with a password.
        const { name, code } = (result.error ?? {}) as NodeJS.ErrnoException
        if (failed && !isWarned) log.warn({ error: { name, code } }, 'export to OTEL_EXPORTER_OTLP_ENDPOINT failed')
        isWarned = failed
        done(result)
      })
    },
    forceFlush: async () => exporter.forceFlush?.(),
    shutdown: () => exporter.shutdown(),
  }
}
