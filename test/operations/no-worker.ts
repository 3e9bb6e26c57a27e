/** Stands where a worker would, and executes nothing, so that the runs of a test stay queued. Ends with its service. */
process.once('disconnect', () => process.exit())
