/** How a command that serves until it is told to stop is told. */

/** Calls `stop` at the first SIGINT or SIGTERM and ends the process after it; a second one ends it at once. */
export function onStopSignal(stop: () => Promise<void>): void {
  let stopping = false
  const onSignal = () => {
    if (stopping) process.exit(1)
    stopping = true
    stop().then(
      () => process.exit(0),
      (error) => {
        process.stderr.write(`${error instanceof Error ? error.stack : error}\n`)
        process.exit(1)
      },
    )
  }
  process.on('SIGINT', onSignal)
  process.on('SIGTERM', onSignal)
  // What was started by another process ends with it, also when that has ended already.
  if (process.connected === false) return onSignal()
  process.once('disconnect', onSignal)
}
