/** What every generated client does: queues a run of `greet`, follows it to its end, and reads it. */
export type Calls = (baseUrl: string, apiKey: string) => Promise<{ queued: string; events: string[]; output: unknown }>

export const request = { variableData: { name: 'Ada' } }

/** The types of the events in the text of an event stream. */
export function eventTypes(stream: string): string[] {
  return [...stream.matchAll(/^event: (.+)$/gm)].map(([, type = '']) => type)
}
