/** Which runs a reader wants to see, as the address of the list has it. */

import type { ListRequest } from '../../../domain/runs/run-reader.ts'
import type { RunStatus } from '../../../domain/runs/run-state.ts'
import { runStatuses, statusWord } from './run-labels.ts'

export interface RunListFilter {
  workflow: string
  status: string
  /** Days in UTC, such as 2026-01-31, both included. */
  from: string
  until: string
}

const unfinished: readonly RunStatus[] = ['queued', 'running']

export const statusChoices: { value: string; title: string }[] = [
  { value: '', title: 'any' },
  { value: 'unfinished', title: 'not finished' },
  ...runStatuses.map((value) => ({ value, title: statusWord(value) })),
]

/** What is no choice, or no day, is left out. */
export function filterOf(query: URLSearchParams): RunListFilter {
  const status = query.get('status') ?? ''
  const dayOf = (name: string) => (startOf(query.get(name) ?? '') === undefined ? '' : (query.get(name) ?? ''))
  return {
    workflow: query.get('workflow') ?? '',
    status: statusChoices.some(({ value }) => value === status) ? status : '',
    from: dayOf('from'),
    until: dayOf('until'),
  }
}

export function requestOf({ workflow, status, from, until }: RunListFilter): Omit<ListRequest, 'limit' | 'cursor'> {
  const end = startOf(until)
  return {
    workflowId: workflow || undefined,
    status: status === 'unfinished' ? unfinished : (status as RunStatus) || undefined,
    createdAfter: startOf(from),
    createdBefore: end === undefined ? undefined : end + dayMilliseconds,
  }
}

/** The query of the address that shows these runs. */
export function searchOf(filter: RunListFilter, more: Record<string, string> = {}): string {
  const chosen = Object.entries({ ...filter, ...more }).filter(([, value]) => value !== '')
  return new URLSearchParams(chosen).toString()
}

export function isAny(filter: RunListFilter): boolean {
  return Object.values(filter).every((value) => value === '')
}

const dayMilliseconds = 24 * 60 * 60 * 1000

function startOf(day: string): number | undefined {
  const at = /^\d{4}-\d\d-\d\d$/.test(day) ? Date.parse(`${day}T00:00:00Z`) : Number.NaN
  // Of a day that its month does not have, a later one is made.
  return !Number.isNaN(at) && new Date(at).toISOString().startsWith(day) ? at : undefined
}
