/** What a worker and its browser's host process tell each other. */

/** What begins the one line of a remote browser's process that is told: what else it writes may quote the address. */
export const reasonMark = 'No browser: '

export type ToHost =
  | {
      type: 'launch'
      executable: string
      /** Beside the host process's own. */
      environment: Record<string, string>
      sandbox: boolean
    }
  /** A browser that runs elsewhere, by the DevTools protocol. */
  | { type: 'reach'; cdpUrl: string }
  | { type: 'check'; id: number }

export type FromHost =
  | {
      type: 'started'
      /** Whoever knows it may use the browser. */
      url: string
      /** As the browser says it, such as `153.0.8010.0`. */
      version: string
      /** The process that Playwright started. */
      pid: number
    }
  /** `ofSandbox`: it may well start without the sandbox. */
  | { type: 'refused'; message: string; ofSandbox: boolean }
  | { type: 'checked'; id: number }
  /** An error that nothing caught, by its name alone: what it says may quote a page. */
  | { type: 'uncaught'; name: string }
