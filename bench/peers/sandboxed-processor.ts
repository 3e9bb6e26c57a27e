/** The job of a sandboxed worker. Returns when it began, in milliseconds since 1970. */
export default async () => performance.timeOrigin + performance.now()
