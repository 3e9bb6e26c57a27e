/** How many runs of a workflow may run at the same time, and which runs are counted together. */

export interface Concurrency {
  /** At least 1. */
  limit: number
  /** All runs of the workflow, those of an account, or those of an account with the same concurrency key. */
  per: ConcurrencyScope
}

export const concurrencyScopes = ['workflow', 'account', 'key'] as const
export type ConcurrencyScope = (typeof concurrencyScopes)[number]

interface Limited {
  /** Shorthand for a limit per workflow. */
  concurrencyLimit: number | null
  concurrency?: Concurrency | undefined
}

export function concurrencyOf({ concurrency, concurrencyLimit }: Limited): Concurrency | null {
  return concurrency ?? (concurrencyLimit === null ? null : { limit: concurrencyLimit, per: 'workflow' })
}

/** The limit if it is counted in this scope; Infinity otherwise. */
export function limitPer(scope: ConcurrencyScope, workflow: Limited | undefined): number {
  const concurrency = workflow && concurrencyOf(workflow)
  return concurrency?.per === scope ? concurrency.limit : Number.POSITIVE_INFINITY
}
