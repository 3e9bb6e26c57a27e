/** Lines of a process that may write without end. */
import { Readable } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import { expect, test, vi } from 'vitest'
import { readLines } from '../../src/domain/workflows/bounded-lines.ts'

async function linesOf(chunks: Iterable<Buffer | string>, bytesMax: number) {
  const lines: [string, boolean][] = []
  const onTooLong = vi.fn()
  const input = Readable.from(chunks, { objectMode: false })
  readLines(input, bytesMax, (line, complete) => lines.push([line, complete]), onTooLong)
  await buffer(input)
  return { lines, tooLong: onTooLong.mock.calls.length }
}

test('lines are complete however the bytes arrive', async () => {
  const bytes = Buffer.from('one\n\nzw\u00f6lf \u{1f600}\nlast')
  const expected = [
    ['one', true],
    ['', true],
    ['zw\u00f6lf \u{1f600}', true],
    ['last', false],
  ]
  expect((await linesOf([bytes], 100)).lines).toEqual(expected)
  expect(
    (
      await linesOf(
        [...bytes].map((byte) => Buffer.of(byte)),
        100,
      )
    ).lines,
  ).toEqual(expected)
})

test('a line above the limit is discarded and reported once', async () => {
  const { lines, tooLong } = await linesOf(['1234', '5', '678\n', '12345\n', '123456'], 5)
  expect(lines).toEqual([['12345', true]])
  expect(tooLong).toBe(2)
})

test('a line of 700 MiB takes no memory', async () => {
  const chunk = Buffer.alloc(2 ** 20, 'x')
  const chunks = function* () {
    for (let megabyte = 0; megabyte < 700; megabyte += 1) yield chunk
    yield Buffer.from('\nnext\n')
  }
  const lines: string[] = []
  const onTooLong = vi.fn()
  const input = Readable.from(chunks(), { objectMode: false })
  readLines(input, 1024, (line) => lines.push(line), onTooLong)
  await new Promise((resolve) => input.once('end', resolve))
  expect(lines).toEqual(['next'])
  expect(onTooLong).toHaveBeenCalledTimes(1)
})
