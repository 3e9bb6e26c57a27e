/** What an executor process writes past `console`, in lines, up to the mark that it writes before it ends an attempt. */
import type { Readable } from 'node:stream'
import { readLines } from '../../domain/workflows/bounded-lines.ts'

/** A longer line of output cannot be masked in part. */
const lineBytesMax = 1024 * 1024

export class ExecutorOutput {
  /** How many marks have been read. It is infinite when the stream has ended. */
  marks = 0
  readonly #onLine: (line: string) => void
  /** Completes the line that is being read. */
  readonly flush: () => void
  /** A mark begins with a newline, which makes an empty line if the line before has ended. */
  #hasEmptyLine = false

  /** @param onMark called after each mark, and at the end of the stream. */
  constructor(stream: Readable, mark: string, onLine: (line: string) => void, onMark: () => void) {
    this.#onLine = onLine
    const onTooLong = () => this.#add(`[a line of more than ${lineBytesMax} bytes was dropped]`)
    this.flush = readLines(
      stream,
      lineBytesMax,
      (line) => {
        if (line !== mark) return this.#add(line)
        this.#hasEmptyLine = false
        this.marks += 1
        onMark()
      },
      onTooLong,
    )
    stream.once('close', () => {
      this.flush()
      this.marks = Number.POSITIVE_INFINITY
      onMark()
    })
  }

  #add(line: string): void {
    if (this.#hasEmptyLine) this.#onLine('')
    this.#hasEmptyLine = line === ''
    if (line !== '') this.#onLine(line)
  }
}
