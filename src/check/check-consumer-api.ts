/** What `execution-service/check` exports. Apart from the implementation, whose types the package does not publish. */

export interface Receiver {
  url: string
  /** `whsec_…` */
  secret: string
  /** How often the work for a run was done. */
  done?(runId: string): Promise<number>
}

/** What one use of the program gets. */
export interface Service {
  executionUrl: string
  apiKey: string
  /** Aborted when the use takes too long. */
  signal: AbortSignal
}

export interface UseEnd {
  done: boolean
  isObserved: boolean
  /** A verb with what follows it, such as `ended with code 1`. */
  ended: string
}

export interface ConsumerCheck {
  /** Directory of the workflows that the program uses. */
  workflows: string
  /**
   * Uses the program once. It resolves to whether the work of a run that succeeded was done; without a value, a use that
   * does not throw counts as one that ended well.
   */
  use?(service: Service): Promise<boolean | UseEnd | undefined>
  /** Where the program gets webhooks. */
  webhook?: Receiver
  /** The port of the Execution API for a program that keeps running; uses then come one after the other. */
  port?: number
  apiKey?: string
  seed?: string
  /** Ids of situations; by default all. */
  only?: readonly string[]
  /** How long a use may take; 20 seconds by default. */
  limitSeconds?: number
  /** How many uses run at the same time; 6 by default. */
  atOnce?: number
}

export interface Finding {
  situation: string
  /** What the service did. */
  service: string
  program: string
  rule: string
  docs: string
  source: string
  seed: string
}

export interface Result {
  situation: string
  group: 'requests' | 'runs' | 'webhooks'
  outcome: 'passed' | 'finding' | 'notApplicable'
  findings: readonly Finding[]
}

export interface Report {
  seed: string
  results: readonly Result[]
  findings: readonly Finding[]
}

/** Checks a program. @throws {Error} that says what to change. */
export declare function checkConsumer(consumer: ConsumerCheck): Promise<Report>
