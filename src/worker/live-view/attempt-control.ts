/** Who controls the browser of an attempt, in the worker, which decides between dashboards that ask at the same time. */
import {
  absenceMillisecondsMax,
  awaitedMinutes,
  type Control,
  type Controller,
  type LiveCommand,
} from '../../domain/runs/live-control.ts'
import type { AttemptMessage, ToExecutor } from '../messages.ts'

type WithoutAttempt<Message> = Message extends unknown ? Omit<Message, 'attempt'> : never
export type ControlMessage = WithoutAttempt<Extract<ToExecutor, { type: 'takeOver' | 'input' }>>
export type ControlEvent = Extract<AttemptMessage, { type: 'paused' | 'resumed' | 'takeOverAwaited' }>

export interface ControlledAttempt {
  send(message: ControlMessage): void
  /** Writes to the run's log. */
  log(message: string): void
  /** The workflow waits, or no longer. */
  pause(isPaused: boolean): void
  changed(): void
}

const free: Control = { phase: 'free', by: null, message: null }

export class AttemptControl {
  control: Control = free
  readonly #attempt: ControlledAttempt
  #absence: NodeJS.Timeout | undefined
  #unanswered: NodeJS.Timeout | undefined

  constructor(attempt: ControlledAttempt) {
    this.#attempt = attempt
  }

  onCommand(command: LiveCommand): void {
    const { by } = this.control
    if (command.type === 'takeOver' && by === null) return this.#begin(command.by)
    if (by?.id !== command.by.id) return
    if (command.type === 'handBack') this.#end(`${by.name} handed the browser back.`)
    if (command.type !== 'input') return
    this.present(by.id)
    // Until then the workflow still uses the page.
    if (this.control.phase !== 'paused') return
    for (const input of command.inputs) this.#attempt.send({ type: 'input', input })
  }

  onMessage(message: ControlEvent): void {
    if (message.type === 'takeOverAwaited') return this.#await(message.message, message.waitMinutes)
    const isPaused = message.type === 'paused'
    this.#attempt.pause(isPaused)
    // `paused` may still be about a person who has handed back: `resumed` then follows.
    if (this.control.by !== null) this.#set({ ...this.control, phase: isPaused ? 'paused' : 'pausing' })
  }

  /** The page of this user is open. */
  present(userId: string): void {
    if (this.control.by?.id !== userId) return
    clearTimeout(this.#absence)
    const { name } = this.control.by
    const end = () => this.#end(`The browser was handed back because ${name} was away.`)
    this.#absence = setTimeout(end, absenceMillisecondsMax)
  }

  /** The attempt has ended. */
  close(): void {
    clearTimeout(this.#absence)
    clearTimeout(this.#unanswered)
  }

  #await(message: string, waitMinutes: number): void {
    const minutes = Math.min(Math.max(0, waitMinutes), awaitedMinutes.max)
    this.#attempt.log(`Waiting for someone to take over the browser: ${message}`)
    if (this.control.by !== null) return this.#set({ ...this.control, phase: 'paused', message })
    this.#set({ phase: 'awaited', by: null, message })
    clearTimeout(this.#unanswered)
    this.#unanswered = setTimeout(() => {
      this.#attempt.log('No user took over the browser in time.')
      this.#set(free)
      this.#attempt.send({ type: 'takeOver', action: 'unanswered' })
    }, minutes * 60_000)
  }

  #begin(by: Controller): void {
    clearTimeout(this.#unanswered)
    const isAwaited = this.control.phase === 'awaited'
    this.#attempt.log(`${by.name} took over the browser.`)
    this.#set({ ...this.control, phase: isAwaited ? 'paused' : 'pausing', by })
    this.#attempt.send({ type: 'takeOver', action: 'begin' })
    this.present(by.id)
  }

  #end(message: string): void {
    clearTimeout(this.#absence)
    this.#attempt.log(message)
    this.#set(free)
    this.#attempt.send({ type: 'takeOver', action: 'end' })
  }

  #set(control: Control): void {
    this.control = control
    this.#attempt.changed()
  }
}
