/** How the dashboard says what a workflow is limited to. */
import type { Workflow } from '../../../domain/workflows/workflow.ts'
import { durationWords } from '../runs/run-labels.ts'

export function timeLimitWords({ timeLimitSeconds }: Workflow): string {
  return `${durationWords(timeLimitSeconds * 1000)} for each attempt`
}

export function concurrencyWords({ concurrencyLimit }: Workflow): string {
  return concurrencyLimit === null ? 'as many as workers have slots' : `${concurrencyLimit} at a time`
}

/** More waits than these are not spelled out. */
const waitsMax = 4

export function retryWords({ retry }: Workflow): string {
  const { maxAttempts, backoffSeconds, backoffFactor } = retry
  if (maxAttempts === 1) return 'one attempt'
  const count = Math.min(maxAttempts - 1, waitsMax)
  const waits = Array.from({ length: count }, (_, index) => backoffSeconds * backoffFactor ** index)
  const words = waits.map((seconds) => (seconds === 0 ? 'no wait' : durationWords(seconds * 1000)))
  const spelled = new Set(words).size === 1 ? words.slice(0, 1) : [...words, ...(maxAttempts - 1 > count ? ['…'] : [])]
  return `up to ${maxAttempts} attempts, with ${spelled.join(', ')} between them`
}
