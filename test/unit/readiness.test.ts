/** What a process logs of its store, which it is asked for every second or two. */
import { expect, test } from 'vitest'
import { type Store, StoreUnavailable } from '../../src/storage/store.ts'
import { Readiness } from '../../src/surfaces/management/readiness.ts'

/** Questions that are answered when the test says so, and the lines that are logged. */
function asking() {
  const questions: PromiseWithResolvers<void>[] = []
  const check = () => {
    const question = Promise.withResolvers<void>()
    questions.push(question)
    return question.promise
  }
  const lines: string[] = []
  const log = { info: (line: string) => lines.push(line), warn: (_: object, line: string) => lines.push(line) }
  const readiness = new Readiness({ check } as Store, log as never)
  readiness.start()
  const lost = new StoreUnavailable('Query read timeout')
  const asked = () => readiness.check().catch(() => {})
  return { readiness, questions, lines, lost, asked }
}

test('a question that fails after a later one was answered is no loss of the store', async () => {
  const { questions, lines, lost, asked } = asking()
  const [first, second, third] = [asked(), asked(), asked()]
  questions[1]?.reject(lost)
  await second
  questions[2]?.resolve()
  await third
  questions[0]?.reject(lost)
  await first
  expect(lines).toEqual(['not ready: the store does not answer', 'ready again: the store answers'])
})

test('a store that fails while the process stops is not told of', async () => {
  const { readiness, questions, lines, lost, asked } = asking()
  const only = asked()
  readiness.stop()
  questions[0]?.reject(lost)
  await only
  expect(lines).toEqual([])
})
