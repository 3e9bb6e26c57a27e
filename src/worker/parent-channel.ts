/** What a worker tells the service that started it, over the channel between them: what it has measured. */
import type { ChildProcess } from 'node:child_process'

const question = 'measured?'
/** Who reads the metrics does not wait for a worker that is busy or dead. */
const answerMillisecondsMax = 1000

interface Told {
  answer: typeof question
  measured: unknown
}

/** Answers the service whenever it asks. */
export function sendToParent(measured: () => Promise<unknown>): void {
  if (!process.send) return
  process.on('message', (message) => {
    if (message !== question) return
    const tell = (told: Told) => process.send?.(told, () => {})
    void measured().then((found) => tell({ answer: question, measured: found }))
  })
}

/** What the worker has measured; `undefined` when it does not answer in time. */
export function askChild(child: ChildProcess): Promise<unknown> {
  if (!child.connected) return Promise.resolve(undefined)
  return new Promise((resolve) => {
    const done = (measured: unknown) => {
      clearTimeout(timer)
      child.off('message', hear)
      resolve(measured)
    }
    const hear = (message: unknown) => {
      const { answer, measured } = message as Partial<Told>
      if (answer === question) done(measured)
    }
    const timer = setTimeout(() => done(undefined), answerMillisecondsMax)
    child.on('message', hear)
    child.send(question, (error) => error && done(undefined))
  })
}
