/** Calls of functions between a thread and its parent, in both directions. */

export interface Channel {
  postMessage(message: unknown): void
  on(event: 'message', listener: (message: Message) => void): unknown
  on(event: 'error', listener: (error: Error) => void): unknown
  on(event: 'exit', listener: () => void): unknown
}

type Message =
  | { kind: 'call'; id: number; name: string; argument: unknown }
  | { kind: 'result'; id: number; value: unknown }
  | { kind: 'error'; id: number; message: string; name: string }

// biome-ignore lint/suspicious/noExplicitAny: the two sides agree on the names and types.
export type Functions = Readonly<Record<string, (argument: any) => Promise<unknown>>>

export type Caller = <Result>(name: string, argument: unknown) => Promise<Result>

/** Returns a function that calls the other side. */
export function createCaller(channel: Channel): Caller {
  const open = new Map<number, PromiseWithResolvers<unknown>>()
  let last = 0
  channel.on('message', (message) => {
    if (message.kind === 'call') return
    const called = open.get(message.id)
    open.delete(message.id)
    if (message.kind === 'result') called?.resolve(message.value)
    else called?.reject(Object.assign(new Error(message.message), { name: message.name }))
  })
  const endAll = (error: Error) => {
    for (const called of open.values()) called.reject(error)
    open.clear()
  }
  // Of a thread.
  channel.on('error', endAll)
  channel.on('exit', () => endAll(new Error('The simulator has stopped.')))
  return <Result>(name: string, argument: unknown) => {
    last += 1
    const called = Promise.withResolvers<unknown>()
    open.set(last, called)
    channel.postMessage({ kind: 'call', id: last, name, argument })
    return called.promise as Promise<Result>
  }
}

/** Answers the calls of the other side. */
export function answerCalls(channel: Channel, functions: Functions): void {
  channel.on('message', async (message) => {
    if (message.kind !== 'call') return
    const { id, name, argument } = message
    try {
      channel.postMessage({ kind: 'result', id, value: await functions[name]?.(argument) })
    } catch (error) {
      const { message, name, constructor: kind } = error as Error
      channel.postMessage({ kind: 'error', id, message, name: name === 'Error' ? kind.name : name })
    }
  })
}
