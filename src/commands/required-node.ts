/** The version of Node that the service needs. Runs on Node 20. */

export const requiredMajor = 24

export const hasRequiredNode = Number.parseInt(process.versions.node, 10) >= requiredMajor
