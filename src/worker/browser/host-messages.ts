/** Messages between a worker and the host process of its browser. */

/** Starts the one line of a remote browser's process that may be reported: other output may quote the address. */
export const reasonMark = 'No browser: '

export type ToHost =
  | {
      type: 'launch'
      executable: string
      /** Added to the host process's own. */
      environment: Record<string, string>
      sandbox: boolean
    }
  /** Connects to a remote browser over the DevTools protocol. */
  | { type: 'connect'; cdpUrl: string }
  | { type: 'check'; id: number }

export type FromHost =
  | {
      type: 'started'
      /** A secret, which gives full control of the browser. */
      url: string
      /** Such as `153.0.8010.0`. */
      version: string
      /** The process that Playwright started. */
      pid: number
    }
  /** `isSandboxError`: it may start without the sandbox. */
  | { type: 'failed'; message: string; isSandboxError: boolean }
  | { type: 'checked'; id: number }
  /** An uncaught error, by its name only: its message may quote a page. */
  | { type: 'uncaught'; name: string }
