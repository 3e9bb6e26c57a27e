/** What a worker and its browser's host process tell each other. */

/** What a running browser is, for people. */
export interface BrowserDescription {
  /** As the browser says it, such as `153.0.8010.0`. */
  version: string
  /** The process of the browser itself. */
  pid: number
  sandboxed: boolean
}

export interface Launch {
  type: 'launch'
  executable: string
  environment: Record<string, string>
  sandbox: boolean
}

export type ToHost = Launch | { type: 'check'; id: number }

export type FromHost =
  | ({ type: 'started'; url: string } & BrowserDescription)
  /** `ofSandbox`: it may well start without the sandbox. */
  | { type: 'refused'; message: string; ofSandbox: boolean }
  | { type: 'checked'; id: number }
