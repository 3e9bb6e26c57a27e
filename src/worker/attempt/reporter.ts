/** Collects an attempt's reports for 20 ms and writes them in one transaction, in order and with secrets masked. */

import { secretCookieValues } from '../../domain/browser-contexts/storage-state.ts'
import type { Claim } from '../../domain/queue/attempts.ts'
import type { RunQueue } from '../../domain/queue/run-queue.ts'
import { boundEventData, ReportLimit } from '../../domain/runs/reported-values.ts'
import type { Report } from '../../domain/runs/run.ts'
import { createRedactor } from '../../domain/workflows/redactor.ts'
import type { Secrets } from '../../domain/workflows/secrets.ts'
import { type DeclaredValues, noValues } from '../../domain/workflows/workflow.ts'
import { StoreUnavailable } from '../../storage/store.ts'

/** Long enough to share a commit, too short for a reader to notice. */
const batchMilliseconds = 20

export class Reporter {
  readonly #queue: Pick<RunQueue, 'report'>
  readonly #lease: Claim
  readonly #redactor: AttemptRedactor
  readonly #onLeaseLost: () => void
  #batch: Report[] = []
  readonly #limit = new ReportLimit()
  #timer: NodeJS.Timeout | undefined
  #writing: Promise<void> = Promise.resolve()
  #isClosed = false

  constructor(queue: Pick<RunQueue, 'report'>, lease: Claim, redactor: AttemptRedactor, onLeaseLost: () => void) {
    this.#queue = queue
    this.#lease = lease
    this.#redactor = redactor
    this.#onLeaseLost = onLeaseLost
  }

  /** Adds a report to the next batch. */
  add(type: Report['type'], data: Record<string, unknown>): void {
    const bounded = this.#isClosed ? undefined : this.#limit.next(type, data)
    if (!bounded) return
    this.#batch.push(this.report(bounded.type, bounded.data))
    this.#timer ??= setTimeout(() => this.#flush(), batchMilliseconds)
  }

  /** A report of this attempt, masked and truncated. */
  report(type: Report['type'], data: Record<string, unknown>, at = Date.now()): Report {
    // Masked before it is truncated, which could leave a part of a secret.
    return { at, type, data: { attempt: this.#lease.number, ...boundEventData(type, this.#redactor.redact(data)) } }
  }

  /** Resolves when all batches are written: `take` then returns what follows them. */
  async written(): Promise<void> {
    for (let written: unknown; written !== this.#writing; ) {
      clearTimeout(this.#timer)
      this.#timer = undefined
      written = this.#writing
      await written
    }
  }

  /** The reports that are in no batch, for another transaction. */
  take(): Report[] {
    clearTimeout(this.#timer)
    this.#timer = undefined
    return this.#batch.splice(0)
  }

  /** The last reports of the attempt. */
  close(): Report[] {
    this.#isClosed = true
    return this.take()
  }

  #flush(): void {
    this.#timer = undefined
    const reports = this.#batch.splice(0)
    const write = async () => {
      if (!(await retryUntilAvailable(() => this.#queue.report(this.#lease, reports)))) this.#onLeaseLost()
    }
    this.#writing = this.#writing.then(write).catch(() => this.#onLeaseLost())
  }
}

/**
 * Masks the secrets of a run, and those in answers and the cookies of its browser from when they are known. Writes the ids
 * of files in place of their paths, which mean nothing after the attempt.
 */
export class AttemptRedactor {
  readonly #secrets: Secrets
  readonly #fileIds: ReadonlyMap<string, string>
  readonly #answers: unknown[] = []
  readonly #cookies = new Set<string>()
  /** For the output, which may contain cookies. Replaced, as is the other, when more secrets become known. */
  redactSecrets: <Value>(value: Value) => Value
  /** For reports and errors. */
  redact: <Value>(value: Value) => Value

  /**
   * @param declared secrets of the account; the same object has the same redactor.
   * @param fileIds by path.
   */
  constructor(secrets: Secrets, declared: DeclaredValues = noValues, fileIds: ReadonlyMap<string, string> = new Map()) {
    this.#secrets = { ...secrets, declared: Object.values(declared.secrets) }
    this.#fileIds = fileIds
    const redact = Object.keys(secrets).length === 0 ? redactorOf(declared) : createRedactor(this.#secrets)
    this.redactSecrets = this.#afterFileIds(redact)
    this.redact = this.redactSecrets
  }

  /** The value with the ids of files in place of their paths. */
  withFileIds<Value>(value: Value): Value {
    return this.#fileIds.size === 0 ? value : (replaceTexts(value, this.#fileIds) as Value)
  }

  #afterFileIds(redact: <Value>(value: Value) => Value): <Value>(value: Value) => Value {
    return this.#fileIds.size === 0 ? redact : (value) => redact(this.withFileIds(value))
  }

  /** @throws {Error} for text that is not a storage state. */
  addCookies(storageState: string): void {
    const before = this.#cookies.size
    for (const value of secretCookieValues(storageState)) this.#cookies.add(value)
    if (this.#cookies.size > before) this.#replace()
  }

  /** @param secrets of answers that the run gets, or of results that it has got. */
  addAnswers(secrets: readonly unknown[]): void {
    if (secrets.length === 0) return
    this.#answers.push(...secrets)
    this.#replace()
  }

  #replace(): void {
    const known = { ...this.#secrets, answers: this.#answers }
    this.redactSecrets = this.#afterFileIds(createRedactor(known))
    this.redact =
      this.#cookies.size === 0
        ? this.redactSecrets
        : this.#afterFileIds(createRedactor({ ...known, cookies: [...this.#cookies] }))
  }
}

/** In the strings of a JSON value. */
function replaceTexts(value: unknown, replacements: ReadonlyMap<string, string>): unknown {
  if (typeof value === 'string') {
    let text = value
    for (const [from, to] of replacements) text = text.replaceAll(from, () => to)
    return text
  }
  if (Array.isArray(value)) return value.map((each) => replaceTexts(each, replacements))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, replaceTexts(each, replacements)]))
}

const redactors = new WeakMap<DeclaredValues, <Value>(value: Value) => Value>()

/** Most runs have no other secrets, and attempts of one workflow get the same values. */
function redactorOf(declared: DeclaredValues) {
  const redactor = redactors.get(declared) ?? createRedactor({ declared: Object.values(declared.secrets) })
  redactors.set(declared, redactor)
  return redactor
}

const retryMilliseconds = 250

/**
 * Retries for as long as the store is unavailable. The lease decides whether the write still counts.
 *
 * @param isFutile whether nothing needs the result any more.
 */
export async function retryUntilAvailable<Result>(
  write: () => Promise<Result>,
  isFutile = () => false,
): Promise<Result> {
  for (;;) {
    try {
      return await write()
    } catch (error) {
      if (!(error instanceof StoreUnavailable)) throw error
      await new Promise((resolve) => setTimeout(resolve, retryMilliseconds))
      if (isFutile()) throw error
    }
  }
}
