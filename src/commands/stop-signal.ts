/** Stops a long-running command on SIGINT, SIGTERM or the end of the process that started it. */

/** One Ctrl-C may arrive twice within this time: from the terminal, and passed on by npm. */
const repeatMilliseconds = 1000

/** Calls `stop` at the first signal and exits after it. A later signal exits at once. */
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
    // The parent process may pass on the signal of the same Ctrl-C late: that is not a second one.
    const isPassedOn = signal === 'SIGTERM' && process.connected
    const isSecond = stoppingSince !== undefined && performance.now() - stoppingSince > repeatMilliseconds
    if (isSecond && !isPassedOn) process.exit(1)
    begin()
  }
  process.on('SIGINT', onSignal)
  process.on('SIGTERM', onSignal)
  // The parent may have ended already.
  if (process.connected === false) return begin()
  process.once('disconnect', begin)
}
