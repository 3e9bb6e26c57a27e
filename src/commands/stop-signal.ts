/** How a command that serves until it is told to stop is told. */

/** One press of Ctrl-C arrives more than once: from the terminal, and from npm or whatever else started the process. */
const oneSignalMilliseconds = 1000

/** Calls `stop` at the first SIGINT or SIGTERM and ends the process after it; one that comes later ends it at once. */
export function onStopSignal(stop: () => Promise<void>): void {
  let stoppingSince: number | undefined
  const begin = () => {
    if (stoppingSince !== undefined) return
    stoppingSince = performance.now()
    stop().then(
      () => process.exit(0),
      (error) => {
        process.stderr.write(`${error instanceof Error ? error.stack : error}\n`)
        process.exit(1)
      },
    )
  }
  const onSignal = (signal: NodeJS.Signals) => {
    // The process that has started this one passes on what it was told, which may be late: that is no second time.
    const isPassedOn = signal === 'SIGTERM' && process.connected
    const isLater = stoppingSince !== undefined && performance.now() - stoppingSince > oneSignalMilliseconds
    if (isLater && !isPassedOn) process.exit(1)
    begin()
  }
  process.on('SIGINT', onSignal)
  process.on('SIGTERM', onSignal)
  // What was started by another process ends with it, also when that has ended already.
  if (process.connected === false) return begin()
  process.once('disconnect', begin)
}
