/** A store whose writes are spans of the traces that they belong to. */
import type { Store } from '../../storage/store.ts'
import { traced } from './tracing.ts'

/** Only in place of the store where traces are on. What waits in a write is seen in its span: others', and the disk. */
export function tracedStore(store: Store): Store {
  const write = (...args: Parameters<Store['write']>) => traced('store write', {}, () => store.write(...args))
  return new Proxy(store, {
    get(target, name) {
      if (name === 'write') return write
      const member: unknown = Reflect.get(target, name)
      return typeof member === 'function' ? member.bind(target) : member
    },
  })
}
