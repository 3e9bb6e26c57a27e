/** Says each event of a run in words. */
import { styleText } from 'node:util'
import type { components } from '../../../generated/execution.v1/types.ts'

export type RunEvent = components['schemas']['RunEvent']

/** One line for a person; `undefined` for the start of a step, which its end follows at once. */
export function inWords(event: RunEvent): string | undefined {
  switch (event.type) {
    case 'status':
      return styleText('bold', statusInWords(event))
    case 'progress':
      return styleText('dim', `progress  ${event.percent.toFixed(0)} % ${event.message ?? ''}`)
    case 'log':
      return `log       ${event.level === 'info' ? event.message : styleText('yellow', event.message)}`
    case 'step':
      return event.state === 'started' ? undefined : `step      ${event.name}: ${stepStates[event.state]}`
  }
}

function statusInWords({ status, attempt, reason }: Extract<RunEvent, { type: 'status' }>): string {
  if (status === 'running') return `running, attempt ${attempt}`
  return reason === null ? status : `${status}${status === 'queued' ? ' again' : ''} (${reason})`
}

const stepStates = { finished: 'done', failed: 'failed', reused: 'done before, not repeated' }
