/** The overview: how the account's runs and the installation's workers are at this moment. */
import type { Parts } from '../dependencies.ts'
import type { Handler } from '../visit.ts'
import { overviewView } from './overview-views.ts'

const failuresShown = 5

export function show({ statistics, workers, runs, apiKeys, workflows }: Parts): Handler {
  return async ({ account }) => {
    const [counted, alive, failed, timedOut, keys] = await Promise.all([
      statistics.count(account.id),
      workers.alive(),
      runs.list(account.id, { status: 'failed', limit: failuresShown }),
      runs.list(account.id, { status: 'timedOut', limit: failuresShown }),
      apiKeys.list(account.id),
    ])
    const failures = [...(failed?.runs ?? []), ...(timedOut?.runs ?? [])].sort((a, b) => (a.id < b.id ? 1 : -1))
    const body = overviewView({
      counted,
      alive,
      failures: failures.slice(0, failuresShown),
      hasKey: keys.length > 0,
      workflows: workflows.list().length,
    })
    return { title: 'Overview', tab: 'overview', body }
  }
}
