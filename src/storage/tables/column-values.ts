/** Values of columns that both stores represent alike. */

/** Since 1970, in UTC. */
export type Milliseconds = number

/** JSON text. */
export type Json = string

/** A boolean. */
export type Flag = 0 | 1
