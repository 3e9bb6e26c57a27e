/**
 * A pool that gives up connections which have died silently, for example behind a proxy or a NAT that has lost its state.
 * TCP notices them after minutes. Here, a statement that has had no response for some seconds is looked for on the server
 * by a new connection: unless it is executed there, its connection ends, and with it all that were opened before. The
 * statement's outcome is unknown then.
 */
import { Socket } from 'node:net'
import { Client, type ClientConfig, Pool, type PoolClient, type QueryResult } from 'pg'

/** Statements take milliseconds, and wait for locks for 5 s at most. */
const silentMillisecondsMax = 3000
const intervalMilliseconds = 1000
const idleMillisecondsMax = 60_000

/** Whether the server executes the connection's statement, or waits for a lock to do so. */
const findExecuting = `SELECT pid FROM pg_stat_activity WHERE pid = ANY ($1) AND state IN ('active', 'fastpath function call')`

/**
 * Writes what is sent in one turn of the event loop by one system call. `pg` uncorks the stream after each statement. It
 * replaces the stream of a connection with TLS.
 */
class CoalescingSocket extends Socket {
  #isCorked = false

  override cork(): void {
    if (this.#isCorked) return
    this.#isCorked = true
    super.cork()
    process.nextTick(() => {
      this.#isCorked = false
      super.uncork()
    })
  }

  override uncork(): void {}
}

/** Notes since when the server has sent no response, although it has statements to answer. */
class WatchedClient extends Client {
  readonly openedAt = performance.now()
  pid = 0
  waitingSince: number | undefined
  #unanswered = 0
  readonly #socket: CoalescingSocket

  constructor(config?: ClientConfig) {
    const socket = new CoalescingSocket()
    super({ ...config, stream: () => socket })
    this.#socket = socket
  }

  /** Fails the statements that the server has not answered, for which `end` would wait. */
  destroy(): void {
    this.#socket.destroy()
  }

  override query(...statement: unknown[]): never {
    const query = super.query.bind(this) as (...statement: unknown[]) => Promise<QueryResult>
    this.waitingSince ??= performance.now()
    this.#unanswered += 1
    const answered = () => {
      this.#unanswered -= 1
      this.waitingSince = this.#unanswered > 0 ? performance.now() : undefined
    }
    const last = statement.at(-1) as unknown
    if (typeof last === 'function') {
      const callback = (...results: unknown[]) => {
        answered()
        last(...results)
      }
      return query(...statement.slice(0, -1), callback) as never
    }
    const result = query(...statement)
    result.then(answered, answered)
    return result as never
  }
}

export class WatchedPool extends Pool {
  readonly #config: ClientConfig
  readonly #clients = new Set<WatchedClient>()
  readonly #timer: NodeJS.Timeout
  #examining: Promise<void> | undefined
  /** Connections that were opened before have died, or may have. */
  #usableSince = 0

  /** @param settings statements that each new connection executes first. */
  constructor(config: ClientConfig, connectionsMax: number, settings: string) {
    super({
      ...config,
      max: connectionsMax,
      // Statements of a transaction that do not depend on each other share a round trip.
      pipeline: true,
      // An idle process makes a statement every few seconds, and opening a connection costs several.
      idleTimeoutMillis: idleMillisecondsMax,
      Client: WatchedClient,
      onConnect: async (client) => {
        await client.query(settings)
        const { rows } = await client.query('SELECT pg_backend_pid() AS pid')
        ;(client as unknown as WatchedClient).pid = rows[0].pid
      },
    } as ConstructorParameters<typeof Pool>[0])
    this.#config = config
    this.on('connect', (client) => this.#clients.add(client as unknown as WatchedClient))
    this.on('remove', (client) => this.#clients.delete(client as unknown as WatchedClient))
    // Idle connections may be lost; the pool replaces them.
    this.on('error', () => {})
    this.#timer = setInterval(() => this.#examine(), intervalMilliseconds).unref()
  }

  /** A connection that was opened after the last one was found dead. */
  async connectUsable(): Promise<PoolClient> {
    for (;;) {
      const client = await this.connect()
      if ((client as unknown as WatchedClient).openedAt >= this.#usableSince) return client
      client.release(true)
    }
  }

  override async end(): Promise<void> {
    clearInterval(this.#timer)
    await super.end()
  }

  #examine(): void {
    const silentSince = performance.now() - silentMillisecondsMax
    const silent = [...this.#clients].filter(({ waitingSince }) => (waitingSince ?? silentSince) < silentSince)
    if (silent.length === 0) return
    this.#examining ??= this.#endDead(silent).finally(() => {
      this.#examining = undefined
    })
  }

  async #endDead(silent: readonly WatchedClient[]): Promise<void> {
    const examined = silent.map((client) => ({ client, since: client.waitingSince }))
    const startedAt = performance.now()
    const executing = await this.#findExecuting(silent.map(({ pid }) => pid))
    // A statement may have been answered in the meantime, and the next one have started.
    const dead = examined.filter(({ client, since }) => client.waitingSince === since && !executing.has(client.pid))
    if (dead.length === 0) return
    this.#usableSince = startedAt
    for (const { client } of dead) client.destroy()
  }

  /** All of them if the server cannot be asked but responds; none if it does not respond. */
  async #findExecuting(pids: readonly number[]): Promise<ReadonlySet<number>> {
    const client = new Client({ ...this.#config, query_timeout: silentMillisecondsMax })
    client.on('error', () => {})
    try {
      await client.connect()
      const { rows } = await client.query<{ pid: number }>(findExecuting, [pids])
      return new Set(rows.map(({ pid }) => pid))
    } catch (error) {
      // An SQLSTATE, such as that of too many connections.
      const isAnswer = /^[0-9A-Z]{5}$/.test((error as { code?: string }).code ?? '')
      return new Set(isAnswer ? pids : [])
    } finally {
      void client.end().catch(() => {})
    }
  }
}
