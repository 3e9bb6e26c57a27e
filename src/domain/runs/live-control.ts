/** Taking over the browser of a run: who has control, what they send, and its limits. */

/** A user of the dashboard. */
export interface Controller {
  id: string
  name: string
}

/**
 * `awaited`: the workflow waits for someone to take over. `pausing`: someone has asked, and the workflow has not reached a
 * step yet. `paused`: it waits until `by` hands back, and gets their input.
 */
export interface Control {
  phase: 'free' | 'awaited' | 'pausing' | 'paused'
  by: Controller | null
  /** What the workflow asks for. */
  message: string | null
}

/** Keys of the keyboard that are held: Alt 1, Ctrl 2, Meta 4, Shift 8, added. */
type Modifiers = number

/** Input for the shown page. Coordinates are in its CSS pixels. */
export type PageInput =
  | {
      type: 'mouse'
      event: 'mouseMoved' | 'mousePressed' | 'mouseReleased'
      x: number
      y: number
      button: 'none' | 'left' | 'middle' | 'right'
      clickCount: number
      modifiers: Modifiers
    }
  | { type: 'wheel'; x: number; y: number; deltaX: number; deltaY: number; modifiers: Modifiers }
  /** `text` is what the key writes, if anything. */
  | {
      type: 'key'
      event: 'keyDown' | 'keyUp'
      key: string
      code: string
      keyCode: number
      text: string
      modifiers: Modifiers
    }
  | { type: 'text'; text: string }
  /** Shows another tab, by its place in the list. */
  | { type: 'tab'; index: number }

export type LiveCommand =
  | { type: 'takeOver'; by: Controller }
  | { type: 'handBack'; by: Controller }
  | { type: 'input'; by: Controller; inputs: readonly PageInput[] }

/** Time without the page of the user who has taken over, after which the browser is handed back. */
export const absenceMillisecondsMax = 2 * 60_000
/** Time of an attempt that does not count towards its time limit because it is paused. */
export const pausedMillisecondsMax = 30 * 60_000
/** How long a workflow waits until someone takes over, unless it says otherwise. */
export const awaitedMinutes = { default: 10, max: 30 }

const textLengthMax = 10_000
const coordinateMax = 100_000

const isNumber = (value: unknown): value is number => Number.isFinite(value) && Math.abs(Number(value)) <= coordinateMax
const isText = (value: unknown, lengthMax = 50) => typeof value === 'string' && value.length <= lengthMax
const isOneOf = (value: unknown, ...values: unknown[]) => values.includes(value)

/** Returns the input with its known members only; `undefined` if it is none. */
export function parseInput(value: unknown): PageInput | undefined {
  const { type, event, x, y, button, clickCount, deltaX, deltaY, key, code, keyCode, text, index, modifiers } =
    Object(value)
  const isAt = isNumber(x) && isNumber(y) && isNumber(modifiers)
  switch (type) {
    case 'mouse':
      return isAt &&
        isNumber(clickCount) &&
        isOneOf(event, 'mouseMoved', 'mousePressed', 'mouseReleased') &&
        isOneOf(button, 'none', 'left', 'middle', 'right')
        ? { type, event, x, y, button, clickCount, modifiers }
        : undefined
    case 'wheel':
      return isAt && isNumber(deltaX) && isNumber(deltaY) ? { type, x, y, deltaX, deltaY, modifiers } : undefined
    case 'key':
      return isNumber(modifiers) &&
        isNumber(keyCode) &&
        isOneOf(event, 'keyDown', 'keyUp') &&
        [key, code, text].every((each) => isText(each))
        ? { type, event, key, code, keyCode, text, modifiers }
        : undefined
    case 'text':
      return isText(text, textLengthMax) ? { type, text } : undefined
    case 'tab':
      return Number.isInteger(index) && index >= 0 ? { type, index } : undefined
    default:
      return undefined
  }
}
