/** Reads server-sent events (HTML Standard, section 9.2.6) from the body of an answer. */

/**
 * The data of a stream's events as they arrive; whoever stops reading them closes the stream. `onBytes` is called for whatever
 * arrives, comments too. Reads by a reader, because Safari cannot iterate over streams.
 */
export async function* eventsOf(stream: ReadableStream<Uint8Array>, onBytes?: () => void): AsyncGenerator<string> {
  const reader = stream.getReader()
  const lines = lineSplitter()
  let data: string[] = []
  try {
    for (;;) {
      const { done, value } = await reader.read()
      if (done) return
      onBytes?.()
      for (const line of lines(value)) {
        const [, name, text = ''] = line.match(/^([^:]*)(?:: ?(.*))?$/s) ?? []
        if (name === 'data') data.push(text)
        if (line !== '' || data.length === 0) continue
        yield data.join('\n')
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
  // Joined only when their line is complete: a line of 2 MB in parts of 1 kB took 1.6 s when each part was read anew.
  let parts: string[] = []
  let endedWithCr = false
  return (bytes) => {
    const decoded = decoder.decode(bytes, { stream: true })
    if (decoded === '') return []
    // A CR ends its line at once, because nothing may come after it; the LF of a CRLF that was cut then ends none.
    const text = endedWithCr && decoded.startsWith('\n') ? decoded.slice(1) : decoded
    endedWithCr = decoded.endsWith('\r')
    const lines = text.split(/\r\n|\n|\r/)
    const rest = lines.pop() ?? ''
    if (lines.length > 0) {
      lines[0] = parts.join('') + lines[0]
      parts = []
    }
    parts.push(rest)
    return lines
  }
}
