/** Traces by OpenTelemetry's SDK, sent by OTLP over HTTP. Loaded only where traces are on. */
import {
  type Context,
  createTraceState,
  type Span as OtelSpan,
  ROOT_CONTEXT,
  SpanKind,
  SpanStatusCode,
  type Tracer,
  trace,
} from '@opentelemetry/api'
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
import { ATTR_ERROR_TYPE, ATTR_SERVICE_NAME, ATTR_SERVICE_VERSION } from '@opentelemetry/semantic-conventions'
import type { Logger } from 'pino'
import packageJson from '../../../package.json' with { type: 'json' }
import { readTraceparent, writeTraceparent } from './traceparent.ts'
import type { Origin, Span, SpanOptions, Tracing } from './tracing.ts'

/** Spans are gathered for this long; the SDK's own 5 s are long for whoever looks for what has just happened. */
const gatherMilliseconds = 1000
/** What a collector that does not answer may delay the end of the process by. */
const closeMillisecondsMax = 3000

/** The exporter reads its own OTEL_EXPORTER_OTLP_… variables: the collector's address, headers, time limits. */
export function startTracing(serviceName: string, log: Logger): Tracing {
  const { version } = packageJson
  const detected = detectResources({ detectors: [envDetector, hostDetector, serviceInstanceIdDetector] })
  const own = resourceFromAttributes({ [ATTR_SERVICE_NAME]: serviceName, [ATTR_SERVICE_VERSION]: version })
  const exporter = warningOnce(new OTLPTraceExporter(), log)
  const provider = new TracerProvider({
    resource: defaultResource().merge(detected).merge(own),
    spanProcessors: [new BatchSpanProcessor({ exporter, scheduledDelayMillis: gatherMilliseconds })],
  })
  const tracer = provider.getTracer('execution-service', version)
  return {
    begin: (name, options, origin) => new TracedSpan(tracer, name, options, contextOf(origin), origin.linked),
    async close() {
      let timer: NodeJS.Timeout | undefined
      const enough = new Promise<void>((resolve) => {
        timer = setTimeout(resolve, closeMillisecondsMax)
      })
      await Promise.race([provider.shutdown().catch(() => {}), enough])
      clearTimeout(timer)
    },
  }
}

const kinds = {
  internal: SpanKind.INTERNAL,
  server: SpanKind.SERVER,
  client: SpanKind.CLIENT,
  producer: SpanKind.PRODUCER,
  consumer: SpanKind.CONSUMER,
}

class TracedSpan implements Span {
  readonly #tracer: Tracer
  readonly #context: Context
  readonly #span: OtelSpan

  constructor(
    tracer: Tracer,
    name: string,
    { kind = 'internal', attributes = {}, at }: SpanOptions,
    parent: Context,
    linked = false,
  ) {
    const cause = trace.getSpanContext(parent)
    const links = linked && cause ? [{ context: cause }] : []
    const start = at === undefined ? {} : { startTime: at }
    this.#tracer = tracer
    this.#span = tracer.startSpan(name, { kind: kinds[kind], attributes, links, ...start }, parent)
    this.#context = trace.setSpan(parent, this.#span)
  }

  get traceId(): string {
    return this.#span.spanContext().traceId
  }

  get spanId(): string {
    return this.#span.spanContext().spanId
  }

  get traceparent(): string {
    return writeTraceparent(this.#span.spanContext())
  }

  child(name: string, options: SpanOptions = {}): Span {
    return new TracedSpan(this.#tracer, name, options, this.#context)
  }

  describe(name: string, attributes: Record<string, string | number | boolean>): void {
    this.#span.updateName(name).setAttributes(attributes)
  }

  end({ at, error }: Parameters<Span['end']>[0] = {}): void {
    if (error) {
      const { name, message = '' } = error
      this.#span.setStatus({ code: SpanStatusCode.ERROR, message }).setAttribute(ATTR_ERROR_TYPE, name)
      if (message !== '') this.#span.recordException({ name, message }, at)
    }
    this.#span.end(at)
  }
}

function contextOf({ traceparent, tracestate }: Origin): Context {
  const caller = traceparent === undefined ? undefined : readTraceparent(traceparent)
  if (!caller) return ROOT_CONTEXT
  const state = tracestate === undefined ? {} : { traceState: createTraceState(tracestate) }
  return trace.setSpanContext(ROOT_CONTEXT, { ...caller, ...state })
}

/** A collector that cannot be reached is told of once, until it has answered: its spans are dropped meanwhile. */
function warningOnce(exporter: SpanExporter, log: Logger): SpanExporter {
  let isWarned = false
  return {
    export(spans, done) {
      exporter.export(spans, (result) => {
        const failed = result.error !== undefined
        // By its name and code alone: a message may have the address in it, with a password.
        const { name, code } = (result.error ?? {}) as NodeJS.ErrnoException
        if (failed && !isWarned)
          log.warn({ error: { name, code } }, 'traces could not be sent to OTEL_EXPORTER_OTLP_ENDPOINT')
        isWarned = failed
        done(result)
      })
    },
    forceFlush: async () => exporter.forceFlush?.(),
    shutdown: () => exporter.shutdown(),
  }
}
