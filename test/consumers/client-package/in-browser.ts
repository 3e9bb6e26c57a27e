/** Makes the tour available to a page. */
import { tour } from './tour.ts'

Object.assign(globalThis, { tour })
