/** A person's input for a page, as commands of the DevTools protocol. */
import type { CDPSession } from 'playwright-core'
import type { PageInput } from '../../domain/runs/live-control.ts'

export async function dispatchInput(session: CDPSession, input: Exclude<PageInput, { type: 'tab' }>): Promise<void> {
  switch (input.type) {
    case 'mouse': {
      const { event: type, x, y, button, clickCount, modifiers } = input
      await session.send('Input.dispatchMouseEvent', { type, x, y, button, clickCount, modifiers })
      return
    }
    case 'wheel': {
      const { x, y, deltaX, deltaY, modifiers } = input
      await session.send('Input.dispatchMouseEvent', { type: 'mouseWheel', x, y, deltaX, deltaY, modifiers })
      return
    }
    case 'key': {
      const { event: type, key, code, keyCode, text, modifiers } = input
      const pressed = { key, code, windowsVirtualKeyCode: keyCode, modifiers }
      await session.send('Input.dispatchKeyEvent', { type, ...pressed, ...(type === 'keyDown' && text && { text }) })
      return
    }
    case 'text':
      await session.send('Input.insertText', { text: input.text })
  }
}
