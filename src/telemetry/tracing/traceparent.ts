/** The `traceparent` header of W3C Trace Context, level 1. */
import { isSpanContextValid, type SpanContext } from '@opentelemetry/api'

const pattern = /^([\da-f]{2})-([\da-f]{32})-([\da-f]{16})-([\da-f]{2})(-.*)?$/

/** `undefined` for what is no header that counts: whoever gets one begins a trace of their own (section 3.2.2). */
export function readTraceparent(text: string): SpanContext | undefined {
  const [, version, traceId = '', spanId = '', flags = '', more] = pattern.exec(text) ?? []
  // Later versions may say more; 255 is none.
  if (version === undefined || version === 'ff' || (version === '00' && more !== undefined)) return undefined
  const context = { traceId, spanId, traceFlags: Number.parseInt(flags, 16) & 1, isRemote: true }
  return isSpanContextValid(context) ? context : undefined
}

export function writeTraceparent({ traceId, spanId, traceFlags }: SpanContext): string {
  return `00-${traceId}-${spanId}-${traceFlags.toString(16).padStart(2, '0')}`
}
