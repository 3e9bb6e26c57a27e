/** Alone in its module, since `init` runs on versions of Node that the service's modules do not run on. */

/** A command that cannot do what was asked; the message says what to do instead. */
export class CommandError extends Error {}
