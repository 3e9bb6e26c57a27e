/** Reads server-sent events (HTML Standard, section 9.2.6) from the body of an answer. */

export interface ServerSentEvent {
  /** The stream's last `id` so far; empty when it has sent none. */
  id: string
  data: string
}

/**
 * The events of a stream as they arrive; whoever stops reading them closes the stream. `onBytes` is called for whatever
 * arrives, comments too. Reads by a reader, because Safari cannot iterate over streams.
 */
export async function* eventsOf(
  stream: ReadableStream<Uint8Array>,
  onBytes?: () => void,
): AsyncGenerator<ServerSentEvent> {
  const reader = stream.getReader()
  const lines = lineSplitter()
  let id = ''
  let data: string[] = []
  try {
    for (;;) {
      const { done, value } = await reader.read()
      if (done) return
      onBytes?.()
      for (const line of lines(value)) {
        const [, name, text = ''] = line.match(/^([^:]*)(?:: ?(.*))?$/s) ?? []
        if (name === 'data') data.push(text)
        if (name === 'id' && !text.includes('\0')) id = text
        if (line !== '' || data.length === 0) continue
        yield { id, data: data.join('\n') }
        data = []
      }
    }
  } finally {
    reader.cancel().catch(() => {})
  }
}

/** Takes bytes, and gives the lines that they complete: ended by CRLF, LF or CR. The decoder drops a byte order mark. */
function lineSplitter(): (bytes: Uint8Array) => string[] {
  const decoder = new TextDecoder()
  let rest = ''
  return (bytes) => {
    const text = rest + decoder.decode(bytes, { stream: true })
    // A CR at the end may be half of a CRLF.
    const lines = text.split(/\r\n|\n|\r(?!$)/)
    rest = lines.pop() ?? ''
    return lines
  }
}
