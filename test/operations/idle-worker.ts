/** Replaces a worker and executes nothing, so that runs stay queued. Ends with its service. */
process.once('disconnect', () => process.exit())
