/**
 * Mutants: changes of the code that tests must notice. `npm run test:mutants` plants each alone. `from` stands exactly
 * once in its file; `tests` has the files that kill the mutant.
 */

export interface Mutant {
  kind: Kind
  file: string
  from: string
  to: string
  tests: readonly string[]
}

/**
 * `filter`: of an account or another owner. `scope`: what a key or user may do. `order`: of statements and commits.
 * `mask`: of secrets.
 */
export type Kind = 'filter' | 'scope' | 'fence' | 'boundary' | 'notification' | 'order' | 'mask'

/** @param tests below `test`, without `.test.ts`. */
function of(file: string, tests: readonly string[], list: readonly [kind: Kind, from: string, to: string][]): Mutant[] {
  const paths = tests.map((name) => `test/${name}.test.ts`)
  return list.map(([kind, from, to]) => ({ kind, file: `src/${file}`, from, to, tests: paths }))
}

const ofAccount = `.where('account_id', '=', accountId)`

const webhooks = [
  ...of(
    'domain/webhooks/webhook-deliveries.ts',
    ['domain/webhooks/webhooks'],
    [
      ['filter', `${ofAccount}.executeTakeFirst()`, '.executeTakeFirst()'],
      ['filter', ".where('endpoint_id', '=', endpoint).where(", '.where('],
      ['filter', ".selectAll().where('endpoint_id', '=', endpoint.id)", '.selectAll()'],
      ['filter', ".where('endpoint_id', '=', endpoint.id)\n        .where('id', '>='", ".where('id', '>='"],
      ['filter', ".set(set).where('endpoint_id', '=', endpointId)", '.set(set)'],
      [
        'notification',
        "this.#store.notify('runs')\n    return delivery\n  }\n\n  /** Queues a delivery again;",
        'return delivery\n  }\n\n  /** Queues a delivery again;',
      ],
      ['notification', "if (delivery) this.#store.notify('runs')", ''],
      ['notification', "if (result) this.#store.notify('runs')", ''],
      ['boundary', '.limit(redeliveredMax + 1)', '.limit(redeliveredMax)'],
      ['boundary', 'Math.max(runRetentionDays, 4)', 'Math.max(runRetentionDays, 2)'],
    ],
  ),
  ...of(
    'domain/webhooks/webhook-endpoints.ts',
    ['domain/webhooks/webhooks', 'operations/listWebhookEndpoints', 'operations/createWebhookEndpoint'],
    [
      ['filter', `.select('id')${ofAccount}`, ".select('id')"],
      ['filter', `.selectAll()${ofAccount}`, '.selectAll()'],
      ['filter', ".where('endpoint_id', '=', endpointId).where('status'", ".where('status'"],
      ['boundary', 'length >= endpointsMax', 'length > endpointsMax'],
      [
        'order',
        'if (row.disabled_reason !== null && set.disabled_reason === null) await makePendingDue(tx, row.id, this.#now())',
        '',
      ],
    ],
  ),
  ...of(
    'domain/webhooks/webhooks.sql.ts',
    ['domain/webhooks/webhooks'],
    [
      ['filter', `${ofAccount}.executeTakeFirst()`, '.executeTakeFirst()'],
      ['fence', 'error = ? WHERE id = ? AND attempts = ?', 'error = ? WHERE id = ? AND CAST(? AS INTEGER) > 0'],
      [
        'fence',
        "AND status = 'pending' AND next_attempt_at <= ? RETURNING *",
        "AND status = 'pending' AND CAST(? AS BIGINT) > 0 RETURNING *",
      ],
      ['fence', 'WHERE disabled_reason IS NULL AND EXISTS', 'WHERE EXISTS'],
      ['fence', 'WHERE id = ? AND disabled_reason IS NULL AND NOT EXISTS', 'WHERE id = ? AND NOT EXISTS'],
      [
        'boundary',
        "AND status = 'pending' AND next_attempt_at <= ?\n    ORDER BY",
        "AND status = 'pending' AND next_attempt_at < ?\n    ORDER BY",
      ],
    ],
  ),
  ...of(
    'domain/webhooks/webhook-dispatcher.ts',
    ['domain/webhooks/webhooks'],
    [
      ['boundary', 'if (this.#stopping.signal.aborted) return now', ''],
      ['fence', '[now + leaseMilliseconds,', '[now,'],
      ['boundary', 'this.#count(endpoint, countMax)', ''],
    ],
  ),
  ...of(
    'domain/webhooks/webhook-event.ts',
    ['domain/webhooks/webhooks'],
    [['boundary', 'if (now >= deadline) return', 'if (now > deadline) return']],
  ),
]

const bulkActions = [
  ...of(
    'domain/bulk-actions/bulk-actions.ts',
    [
      'domain/bulk-actions/bulk-actions',
      'operations/getBulkAction',
      'operations/bulkCancelRuns',
      'operations/two-accounts.slow',
    ],
    [
      ['filter', `selectFrom('bulk_actions')${ofAccount}`, "selectFrom('bulk_actions')"],
      ['filter', `${ofAccount}.executeTakeFirst()`, '.executeTakeFirst()'],
      ['filter', `.selectAll()${ofAccount}`, '.selectAll()'],
      ['boundary', 'length >= unfinishedMax', 'length > unfinishedMax'],
      ['boundary', 'filter.before !== undefined && filter.before < row.id ?', 'filter.before !== undefined ?'],
    ],
  ),
  ...of(
    'domain/bulk-actions/bulk-worker.ts',
    ['domain/bulk-actions/bulk-actions'],
    [
      ['scope', 'if (contextId !== null && may === 0)', 'if (contextId !== null && may === 2)'],
      ['notification', "store.notify('cancellations')", ''],
      ['notification', "store.notify('queue')", ''],
      ['notification', "store.notify('runs')", ''],
      ['order', ".orderBy('next_at').limit(1)", ".orderBy('id').limit(1)"],
      ['order', 'const action = await this.#findDue(tx)', 'const action = await this.#findDue(store.read)'],
    ],
  ),
]

const schedules = [
  ...of(
    'domain/schedules/scheduler.ts',
    ['domain/schedules/schedules', 'domain/schedules/schedules-overlap'],
    [
      ['fence', "update.where('updated_at', '=', row.updated_at).where(", 'update.where('],
      ['notification', "if (runs.length > 0) store.notify('queue')", ''],
      ['notification', "store.notify('cancellations')", ''],
      ['notification', "store.notify('runs')", ''],
      ['order', 'const rows = await findBatch(tx, now)', 'const rows = await findBatch(store.read, now)'],
      ['order', 'successor && time < successor.time', 'successor'],
      ['boundary', 'next_at > last_run_for', 'next_at >= last_run_for'],
    ],
  ),
  ...of(
    'domain/schedules/schedule-times.ts',
    ['domain/schedules/schedule-times'],
    [
      ['boundary', 'nextAt <= missedUntil ?', 'nextAt < missedUntil ?'],
      ['boundary', 'Math.max(nextAt, missedUntil + 1)', 'Math.max(nextAt, missedUntil)'],
    ],
  ),
  ...of(
    'domain/schedules/schedules.ts',
    ['domain/schedules/schedules', 'operations/listSchedules', 'operations/createSchedule'],
    [
      ['filter', `.select('id')${ofAccount}`, ".select('id')"],
      ['filter', `.selectAll()${ofAccount}`, '.selectAll()'],
      ['boundary', 'length >= schedulesMax', 'length > schedulesMax'],
    ],
  ),
  ...of(
    'domain/schedules/schedules.sql.ts',
    ['domain/schedules/schedules', 'domain/schedules/schedules-overlap', 'operations/two-accounts.slow'],
    [
      ['filter', `${ofAccount}.executeTakeFirst()`, '.executeTakeFirst()'],
      ['fence', "'paused_reason IS NULL AND waits_for_run = 0'", "'paused_reason IS NULL'"],
      ['boundary', 'next_at <= ?', 'next_at < ?'],
    ],
  ),
]

const deployments = [
  ...of(
    'domain/deployments/deployments.ts',
    ['domain/deployments/deployments'],
    [
      ['order', 'const compared = await compare(tx)', 'const compared = before'],
      ['notification', "this.#store.notify('deployments')", ''],
    ],
  ),
  ...of(
    'domain/deployments/deployments.sql.ts',
    ['domain/deployments/deployments'],
    [['filter', "    .where('account_id', accountId === null ? 'is' : '=', accountId)\n", '']],
  ),
  ...of(
    'domain/deployments/deployments.sql.ts',
    ['domain/deployments/deployments'],
    [['fence', 'if (!pinned) return superseded', 'return superseded']],
  ),
]

const browserContexts = [
  ...of(
    'domain/browser-contexts/context-lease.ts',
    [
      'domain/browser-contexts/browser-contexts',
      'domain/browser-contexts/browser-contexts-saved',
      'domain/browser-contexts/browser-contexts-waiting',
    ],
    [
      ['fence', 'AND (held_by_run_id IS NULL OR held_by_run_id = ?)', "AND COALESCE(?, '') <> ''"],
      ['fence', 'fence = fence + 1', 'fence = fence'],
      [
        'fence',
        'WHERE id = ? AND held_by_run_id = ? RETURNING id',
        "WHERE id = ? AND CAST(? AS TEXT) <> '' RETURNING id",
      ],
    ],
  ),
  ...of(
    'domain/browser-contexts/context-versions.ts',
    ['domain/browser-contexts/browser-contexts-versions', 'domain/browser-contexts/browser-contexts-saved'],
    [
      ['fence', ' && (!lease || context.fence === lease.fence)', ''],
      ['order', 'if (mayReplace?.(currentVersionId(context)) === false)', 'if (mayReplace === null)'],
      ['boundary', "'<=', version - versionsKept", "'<', version - versionsKept"],
      ['filter', "      .where('browser_context_id', '=', context?.id ?? '')\n", ''],
    ],
  ),
  ...of(
    'domain/browser-contexts/browser-contexts.sql.ts',
    [
      'domain/browser-contexts/browser-contexts',
      'domain/browser-contexts/browser-contexts-versions',
      'operations/queueRemoteRun',
    ],
    [
      [
        'filter',
        "    .where('browser_contexts.account_id', '=', accountId)\n    .where('deleted_at', 'is', null)\n}",
        "    .where('deleted_at', 'is', null)\n}",
      ],
      [
        'filter',
        `    ${ofAccount}\n    .where('deleted_at', 'is', null)\n    .where('id'`,
        "    .where('deleted_at', 'is', null)\n    .where('id'",
      ],
      ['filter', `.select('id')${ofAccount}`, ".select('id')"],
    ],
  ),
]

const queue = [
  ...of(
    'domain/queue/claim.ts',
    ['domain/queue/concurrency'],
    [['fence', "{ concurrent: true, exclusive: 'claim' }", '{ concurrent: true }']],
  ),
  ...of(
    'domain/queue/claim.ts',
    ['domain/queue/notifications', 'domain/queue/queue'],
    [['notification', "if (claims.length > 0) this.#store.notify('runs')", '']],
  ),
  ...of(
    'domain/queue/claim.ts',
    ['domain/queue/waits'],
    [
      ['fence', ' || ofCaller.concurrency', ''],
      ['fence', ' && !ofCalled.throttle', ''],
    ],
  ),
  ...of(
    'domain/queue/waits.ts',
    ['domain/queue/waits'],
    [
      ['order', 'isFirst || endWaitsOf(', '((..._: unknown[]) => {})('],
      ['fence', "if (wait && wait.status !== 'open') return { kind: 'timedOut', wait }", ''],
    ],
  ),
  ...of(
    'domain/queue/run-queue.ts',
    ['domain/queue/notifications', 'domain/queue/queue', 'domain/queue/attempts', 'domain/queue/hand-back'],
    [
      ['notification', "if (completed) this.#store.notify('queue')", ''],
      ['notification', "if (this.#claims.hasLimits || mayResume) this.#store.notify('queue')", ''],
      ['notification', 'this.#claims.hasLimits || mayResume', 'this.#claims.hasLimits'],
      ['notification', "this.#store.notify('runs')\n        const hasWaiting", 'const hasWaiting'],
      ['notification', "if (isLeased) this.#store.notify('queue')", ''],
      ['notification', "if (isLeased) this.#store.notify('runs')", ''],
    ],
  ),
  ...of(
    'domain/queue/enqueue-runs.ts',
    ['domain/queue/notifications', 'domain/queue/queue', 'domain/run-api/run-again'],
    [
      ['notification', "store.notify('queue')", ''],
      ['scope', 'if (!mayReuse({ apiKeyId, userId }, variables, earlier)) return {}', ''],
    ],
  ),
  ...of(
    'domain/queue/attempts.ts',
    ['domain/queue/concurrency', 'domain/browser-contexts/browser-contexts-waiting'],
    [
      ['notification', 'if (contextId !== null) await tx.all(tx.statements.resumeNextForContext, [contextId])', ''],
      [
        'notification',
        '    if (group !== null) await tx.all(tx.statements.resumeNextOfGroup, [group])\n    return undefined',
        '    return undefined',
      ],
    ],
  ),
  ...of(
    'domain/queue/limits.ts',
    ['domain/queue/concurrency', 'domain/queue/throttles'],
    [
      ['boundary', 'if (ofWorkflow >= limit)', 'if (ofWorkflow > limit)'],
      ['boundary', 'row.permits_at > now', 'row.permits_at >= now'],
    ],
  ),
  ...of(
    'domain/queue/cancellation.ts',
    ['domain/run-api/runs', 'domain/queue/queue', 'domain/bulk-actions/bulk-actions'],
    [['notification', 'await resumeNextOfGroups(tx, cancelled.filter(isCancelled))', '']],
  ),
  ...of(
    'domain/run-api/runs.ts',
    ['domain/queue/notifications', 'domain/run-api/runs'],
    [
      ['notification', "store.notify('cancellations')", ''],
      ['notification', "store.notify('runs')", ''],
    ],
  ),
  ...of(
    'domain/run-api/run-feed.ts',
    ['domain/run-api/run-feed'],
    [['notification', 'for (const runId of changed) notifyAll(this.#followers.run.get(runId))', '']],
  ),
  ...of(
    'domain/run-api/live-views.ts',
    ['domain/run-api/live-views'],
    [
      ['notification', "this.#store.notify('liveViews')", ''],
      ['boundary', 'FROM live_views WHERE expires_at > ?', 'FROM live_views WHERE expires_at >= ?'],
    ],
  ),
  ...of(
    'domain/remote-workers/attempt-live-views.ts',
    ['operations/live-views', 'operations/getLiveViews'],
    [
      ['filter', 'runId === found.row.id && !known.has(id)', '!known.has(id)'],
      ['filter', 'runId === found.row.id && !known.has(id)', 'runId === found.row.id'],
    ],
  ),
  ...of(
    'domain/run-api/artifacts.ts',
    ['domain/run-api/artifacts'],
    [
      ['filter', 'AND run_id IN (${runsOfAccount})', "AND CAST(? AS TEXT) <> ''"],
      ['boundary', 'AND name = ? AND created_at > ?', 'AND name = ? AND created_at >= ?'],
    ],
  ),
]

const storage = [
  ...of(
    'storage/runs/run-statements.ts',
    ['domain/queue/queue', 'domain/run-api/runs'],
    [
      ['filter', "WHERE id = ? AND account_id || '' = ?", "WHERE id = ? AND CAST(? AS TEXT) <> ''"],
      ['filter', "(${marks}) AND account_id || '' = ?", "(${marks}) AND CAST(? AS TEXT) <> ''"],
      [
        'fence',
        ' AND cancel_requested = 0\n    RETURNING id, workflow_id, status',
        '\n    RETURNING id, workflow_id, status',
      ],
      ['boundary', 'idempotency_keys.expires_at <= ?', 'idempotency_keys.expires_at < ?'],
      ['boundary', 'expires_at > ${now}', 'expires_at >= ${now}'],
    ],
  ),
  ...of(
    'storage/runs/postgres-run-statements.ts',
    ['domain/run-api/runs', 'domain/queue/attempts', 'domain/queue/queue'],
    [
      ['fence', ' AND attempts = attempt.number\n', '\n'],
      ['fence', 'runs.worker_id = attempt.worker_id AND cancel_requested = 0', 'runs.worker_id = attempt.worker_id'],
      ['fence', 'AND worker_id = ? AND id = ANY', "AND CAST(? AS TEXT) <> '' AND id = ANY"],
      [
        'fence',
        '`SELECT * FROM runs WHERE id = ? AND attempts = ? AND',
        '`SELECT * FROM runs WHERE id = ? AND CAST(? AS INTEGER) > 0 AND',
      ],
    ],
  ),
  ...of(
    'storage/runs/run-maintenance.ts',
    ['domain/queue/queue', 'maintenance/maintenance'],
    [['fence', "WHERE id = ? AND status = 'queued' AND ${mayExpire} RETURNING", 'WHERE id = ? RETURNING']],
  ),
  ...of(
    'maintenance/maintenance.ts',
    ['domain/queue/notifications', 'domain/queue/queue', 'maintenance/maintenance'],
    [
      ['boundary', 'times.some((at) => at !== null && at <= now)', 'times.some((at) => at !== null && at < now)'],
      ['notification', "this.#store.notify('queue')\n    this", 'this'],
      ['notification', "    this.#store.notify('runs')\n    return true", '    return true'],
    ],
  ),
  ...of(
    'maintenance/maintenance-lease.ts',
    ['maintenance/maintenance-lease'],
    [
      ['fence', 'WHERE name = ? AND fence = ? RETURNING', 'WHERE name = ? AND fence <> ? RETURNING'],
      ['boundary', 'Math.min(state.expires_at - this.#now(), ', '((_: number, left: number) => left)(0, '],
    ],
  ),
]

const remoteWorkers = [
  ...of(
    'domain/account-values/declared-values.ts',
    ['domain/account-values/declared-values'],
    [['filter', '`${accountId} ${workflows.deploymentOf(workflowId)}', '`${workflows.deploymentOf(workflowId)}']],
  ),
  ...of(
    'domain/run-api/waits.ts',
    ['domain/run-api/waits', 'dashboard/answer-links'],
    [
      ['scope', "?? null, 'operator')", "?? null, 'viewer')"],
      ['scope', "role !== undefined && permitsScope(role, 'waits:write')", 'role !== undefined'],
      ['boundary', 'link.expires_at <= this.#now()', 'link.expires_at < 0'],
    ],
  ),
  ...of(
    'domain/remote-workers/remote-workers.ts',
    ['operations/remote-workers', 'operations/audit'],
    [
      ['filter', '|| !hasSameMajor(workflow.version, version)', ''],
      ['filter', 'registered.filter((each) => !hasSameMajor(each, version))', '[]'],
      ['order', 'given.hasWaits ? await queue.takeEnded(given) : given.steps', 'given.steps'],
    ],
  ),
  ...of(
    'domain/remote-workers/leased-attempts.ts',
    ['operations/remote-workers'],
    [
      ['scope', 'declared && (await deployments.findWorkflows(declared.definition))', 'undefined'],
      ['scope', 'declared ? [...Object.values(declared.secrets), ...declared.earlier] : []', '[]'],
    ],
  ),
]

const files = [
  ...of(
    'domain/files/files.sql.ts',
    ['domain/files/files'],
    [
      [
        'filter',
        'WHERE id = ? AND account_id = ? AND ${isVisible} RETURNING id',
        "WHERE id = ? AND CAST(? AS TEXT) <> '' AND ${isVisible} RETURNING id",
      ],
      ['boundary', "status = 'ready' AND (expires_at > ?", "status = 'ready' AND (expires_at >= ?"],
      ['filter', "deleteFrom('schedule_files').where('schedule_id', '=', scheduleId)", "deleteFrom('schedule_files')"],
    ],
  ),
  ...of(
    'domain/files/files.ts',
    ['domain/files/files'],
    [
      [
        'filter',
        'WHERE id = ? AND account_id = ? AND ${isVisible}',
        "WHERE id = ? AND CAST(? AS TEXT) <> '' AND ${isVisible}",
      ],
      ['filter', 'WHERE account_id = ? AND sha256 = ?', "WHERE CAST(? AS TEXT) <> '' AND sha256 = ?"],
      ['filter', 'AND name = ? AND media_type', "AND CAST(? AS TEXT) <> '' AND media_type"],
      ['filter', 'FROM run_files WHERE run_id = ?', "FROM run_files WHERE CAST(? AS TEXT) <> ''"],
      ['fence', ' AND NOT ${isReferred}', ''],
      ['fence', "if (isUsed) return 'inUse'", ''],
      ['boundary', 'Math.min(size_bytes, last + 1 - position)', 'Math.min(size_bytes, last - position)'],
      ['boundary', 'this.#usage.require(accountId, part.length)', ''],
    ],
  ),
]

const accountValues = [
  ...of(
    'domain/account-values/declared-values.ts',
    ['domain/account-values/declared-values'],
    [
      ['fence', 'recent && recent.version === valuesVersion', 'recent'],
      ['fence', '!isExternal && valuesVersion !== undefined', 'valuesVersion !== undefined'],
    ],
  ),
  ...of(
    'domain/account-values/account-values.sql.ts',
    ['domain/account-values/declared-values'],
    [
      ['filter', 'WHERE account_id = ? AND kind IN', "WHERE CAST(? AS TEXT) <> '' AND kind IN"],
      ['fence', 'SET values_version = values_version + 1', 'SET values_version = values_version'],
    ],
  ),
  ...of(
    'domain/account-values/account-values.ts',
    ['domain/account-values/declared-values'],
    [
      ['filter', "all.where('account_id', '=', accountId).where(", 'all.where('],
      ['filter', `selectFrom('account_values')${ofAccount}`, "selectFrom('account_values')"],
      ['filter', `deleteFrom('account_values')${ofAccount}`, "deleteFrom('account_values')"],
      ['boundary', 'names.length >= valuesMax', 'names.length > valuesMax'],
      ['notification', "this.#store.notify('queue')", ''],
      ['notification', "this.#store.notify('runs')", ''],
    ],
  ),
]

const environments = [
  ...of(
    'domain/accounts/environments.ts',
    ['domain/accounts/environments'],
    [
      ['scope', 'await requireAdmin(tx, ownerId, by)\n      const existing', 'const existing'],
      ['scope', 'await requireAdmin(tx, ownerId, by)\n      const environment', 'const environment'],
      ['boundary', 'existing.length >= this.max', 'existing.length > this.max'],
      ['fence', 'if (environment.id === ownerId)', "if (environment.id === '')"],
      ['filter', "it('parent_id', '=', ownerId)", "it('parent_id', 'is not', null)"],
      ['scope', 'second_factor_required: owner.secondFactorRequired ? 1 : 0', 'second_factor_required: 0'],
    ],
  ),
]

const signIns = [
  ...of(
    'domain/browser-contexts/sign-ins.ts',
    ['domain/browser-contexts/sign-ins'],
    [
      ['filter', "entries.where('browser_context_id', '=', context.id)", 'entries'],
      ['boundary', "'next_check_at', '<=', now", "'next_check_at', '<', now"],
      ['fence', 'if (!context || context.held_by_run_id !== null)', 'if (!context)'],
      ['mask', 'if (!showsSame && kept.length > 0)', 'if (kept.length < 0)'],
      ['mask', 'before?.workflow_id === workflowId', 'before !== undefined'],
      ['notification', 'for (const topic of others) this.#store.notify(topic)', ''],
      ['notification', "this.#store.notify('queue')", ''],
      ['notification', 'await resumeForSession(tx, contextId, at)', ''],
      ['fence', 'await tx.all(unsetSignsIn, [runId])', ''],
      ['scope', 'if (!workflow.signsIn) return', 'if (workflow === undefined) return'],
    ],
  ),
]

const waits = [
  ...of(
    'domain/queue/waits.ts',
    ['domain/queue/waits'],
    [
      ['fence', "if (row.finished_at !== null) return { kind: 'ended', wait }", ''],
      ['notification', 'ended.length > 0 ? tx.all(resume, [at, row.id]) : undefined', 'undefined'],
      ['boundary', 'depth >= callDepthMax', 'depth > callDepthMax'],
      ['boundary', 'return left <= 0', 'return left < 0'],
      ['fence', "wait.kind !== 'answer' || earlier.reached_at !== null", "wait.kind !== 'answer'"],
      ['fence', 'if (row.cancel_requested === 1) {', 'if (row.cancel_requested === 2) {'],
      ['fence', 'earlier && earlier.kind !== kind', "earlier && earlier.kind === ''"],
      ['order', 'if (isIdle() && !isFirst) results.ended =', 'if (isFirst) results.ended ='],
    ],
  ),
  ...of(
    'domain/run-api/waits.ts',
    ['domain/run-api/waits'],
    [
      ['filter', `selectFrom('run_waits').selectAll()${ofAccount}`, "selectFrom('run_waits').selectAll()"],
      ['notification', "store.notify('queue')", ''],
      ['notification', "store.notify('runs')", ''],
      ['scope', "(scopes?.includes('waits:write') ?? true)", 'scopes !== undefined'],
      ['mask', "'masked' in checked ? checked.masked : null", "'masked' in checked ? value : null"],
      ['fence', "if (wait?.status === 'completed') return", "if (wait?.status === '') return"],
      ['fence', "row.finished_at !== null || (wait && wait.status !== 'open')", 'row.finished_at !== null'],
    ],
  ),
]

const remoteAttempts = [
  ...of(
    'domain/remote-workers/remote-attempts.ts',
    ['operations/remote-workers'],
    [['fence', 'if (position > before.position)', 'if (position < 0)']],
  ),
  ...of(
    'domain/remote-workers/remote-workers.ts',
    ['operations/remote-workers'],
    [
      ['filter', 'row?.api_key_id === key.apiKeyId ? row', 'row ? row'],
      ['filter', 'row?.api_key_id === apiKeyId ? row', 'row ? row'],
    ],
  ),
]

const locks = [
  ...of(
    'storage/runs/postgres-run-statements.ts',
    ['storage/lock-order'],
    [
      ['order', 'ORDER BY id FOR UPDATE)\n    UPDATE runs', 'ORDER BY id DESC FOR UPDATE)\n    UPDATE runs'],
      ['order', 'if (callers.length === 0) return', 'return'],
      ['order', "const skipLocked = 'FOR UPDATE SKIP LOCKED'", "const skipLocked = 'FOR UPDATE'"],
    ],
  ),
  ...of(
    'domain/queue/run-queue.ts',
    ['storage/lock-order'],
    [['order', 'mayEnd ? tx.statements.lockEnding(tx, [runId]) : undefined', 'undefined']],
  ),
  ...of(
    'domain/queue/cancellation.ts',
    ['storage/lock-order'],
    [['order', 'await tx.statements.lockCancelled(tx, runIds)', '']],
  ),
  ...of(
    'maintenance/maintenance.ts',
    ['storage/lock-order'],
    [['order', 'if (ids.length > 0) await tx.statements.lockEnding(tx, ids)', '']],
  ),
]

const accounts = [
  ...of(
    'domain/api-keys/api-keys.ts',
    ['domain/api-keys/api-keys', 'domain/api-keys/api-key-changes'],
    [
      ['boundary', 'ofUser >= keysPerUserMax', 'ofUser > keysPerUserMax'],
      ['boundary', 'key.expires_at <= now', 'key.expires_at < now'],
    ],
  ),
  ...of(
    'domain/api-keys/api-keys.sql.ts',
    ['domain/api-keys/api-keys', 'domain/api-keys/api-key-changes', 'domain/accounts/environments'],
    [
      ['filter', 'AND account_id = (SELECT COALESCE(parent_id, id) FROM accounts WHERE id = ?)', "AND ? <> ''"],
      ['filter', `.selectAll()${ofAccount}`, '.selectAll()'],
      ['filter', `    ${ofAccount}\n    .where('deleted_at'`, "    .where('deleted_at'"],
    ],
  ),
  ...of(
    'domain/api-keys/run-tokens.ts',
    ['domain/api-keys/run-tokens', 'operations/createRunToken'],
    [['boundary', '* 1000 <= this.#now()', '* 1000 < this.#now()']],
  ),
  ...of(
    'domain/accounts/sessions.ts',
    ['domain/accounts/sessions'],
    [
      ['fence', ' AND users.credentials_epoch = sessions.credentials_epoch', ''],
      ['fence', 'AND credentials_epoch = ? AND removed_at', 'AND CAST(? AS INTEGER) >= 0 AND removed_at'],
      ['filter', ".where('id', '=', id).where('user_id', '=', user.id)", ".where('id', '=', id)"],
      ['boundary', 'expires_at > ? AND last_used_at', 'expires_at >= ? AND last_used_at'],
    ],
  ),
  ...of(
    'domain/accounts/sign-in-links.ts',
    ['domain/accounts/sign-in-links'],
    [
      ['fence', ".where('kind', 'in', kinds).where('ended_at', 'is', null)", ".where('kind', 'in', kinds)"],
      ['scope', "link.where('kind', 'in', kinds).where(", 'link.where('],
      ['filter', `.#selectWorking(tx)${ofAccount}`, '.#selectWorking(tx)'],
      [
        'boundary',
        ".where('ended_at', 'is', null).where('expires_at', '>', now)",
        ".where('ended_at', 'is', null).where('expires_at', '>=', now)",
      ],
    ],
  ),
  ...of(
    'domain/accounts/second-factors.ts',
    ['domain/accounts/second-factors'],
    [
      ['fence', ".where('totp_step', '<', step)", ".where('totp_step', '<=', step)"],
      ['boundary', 'expiresAt > this.#now()', 'expiresAt >= this.#now()'],
    ],
  ),
  ...of(
    'domain/accounts/users.ts',
    ['domain/accounts/users'],
    [
      ['filter', `.selectAll()${ofAccount}`, '.selectAll()'],
      ['filter', 'row?.account_id === accountId ? toUser(row)', 'row ? toUser(row)'],
    ],
  ),
  ...of(
    'domain/accounts/accounts.sql.ts',
    ['domain/accounts/users', 'domain/accounts/sign-in-links', 'domain/accounts/second-factors'],
    [
      ['scope', `.select('id')${ofAccount}.where('role'`, ".select('id').where('role'"],
      ['fence', "user.where('credentials_epoch', '=', credentialsEpoch)", 'user'],
      ['fence', "if (role !== 'admin') await endLinksCreatedBy(tx, userId, Date.now())", ''],
      ['fence', 'await setRoleOfKeys(tx, userId, role)', ''],
    ],
  ),
  ...of(
    'domain/audit-log/audit-log.ts',
    ['domain/audit-log/audit-log'],
    [
      ['filter', `.selectAll()${ofAccount}`, '.selectAll()'],
      ['boundary', "rows.where('id', '<', before)", "rows.where('id', '<=', before)"],
    ],
  ),
]

const worker = [
  ...of(
    'worker/worker.ts',
    ['worker/worker', 'worker/lease'],
    [
      ['notification', "store.listen('queue', () => this.#wake()),", ''],
      ['fence', "attempt.interrupt('leaseLost')", ''],
      ['order', "if (this.#cancelled.has(keyOf(lease))) attempt.interrupt('cancelled')", ''],
    ],
  ),
  ...of(
    'worker/slots.ts',
    ['worker/interleavings'],
    [
      ['fence', 'this.#isStopping || ', ''],
      ['boundary', 'this.#callers >= this.#count', 'this.#callers > this.#count'],
      ['fence', 'if (isLast && slot.offeredBy === undefined)', 'if (isLast)'],
      ['order', 'if (slot && slot.stack.at(-1) !== caller) this.#pass(slot)', ''],
      ['notification', 'if (caller !== undefined) return this.#resolve(caller)', 'if (caller !== undefined) return'],
    ],
  ),
  ...of(
    'worker/attempt/attempt.ts',
    ['worker/interleavings'],
    [
      ['fence', 'if (!this.#hasEnded) this.#timeLimit.pause({ isLimited: false })', ''],
      ['fence', 'if (this.#isOver) return\n    const { queue, slots }', 'const { queue, slots }'],
      ['order', 'slot?.keep()\n      throw error', 'throw error'],
    ],
  ),
]

export const mutants: readonly Mutant[] = [
  ...webhooks,
  ...bulkActions,
  ...schedules,
  ...deployments,
  ...browserContexts,
  ...queue,
  ...storage,
  ...locks,
  ...remoteWorkers,
  ...files,
  ...accountValues,
  ...environments,
  ...signIns,
  ...waits,
  ...remoteAttempts,
  ...accounts,
  ...worker,
]
