/** Reads lines from a process that may write without end. Node's `readline` throws on a line of 512 MiB. */
import type { Readable } from 'node:stream'

const newline = 10

/**
 * @param bytesMax bytes of a line.
 * @param onLine called with each line, without its newline, and whether it was complete when the stream ended.
 * @param onTooLong called once for each line that exceeds the limit, which is discarded.
 * @returns a function that passes on what has been read of a line, as if it had ended.
 */
export function readLines(
  input: Readable,
  bytesMax: number,
  onLine: (line: string, complete: boolean) => void,
  onTooLong: () => void,
): () => void {
  let chunks: Buffer[] = []
  let bytes = 0
  const add = (chunk: Buffer) => {
    const wasTooLong = bytes > bytesMax
    bytes += chunk.length
    if (bytes <= bytesMax) chunks.push(chunk)
    else if (!wasTooLong) {
      chunks = []
      onTooLong()
    }
  }
  const finish = (complete: boolean) => {
    const line = bytes > bytesMax ? undefined : chunks.length === 1 ? chunks[0] : Buffer.concat(chunks)
    chunks = []
    bytes = 0
    if (line) onLine(line.toString(), complete)
  }
  input.on('data', (chunk: Buffer) => {
    let start = 0
    for (let end = chunk.indexOf(newline); end >= 0; end = chunk.indexOf(newline, start)) {
      add(chunk.subarray(start, end))
      finish(true)
      start = end + 1
    }
    if (start < chunk.length) add(start === 0 ? chunk : chunk.subarray(start))
  })
  const flush = () => void (bytes > 0 && finish(false))
  input.on('end', flush)
  // Reading fails when the process is killed.
  input.on('error', () => {})
  return flush
}
