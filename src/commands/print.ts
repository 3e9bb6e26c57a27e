/** What commands print on standard output. */

process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EPIPE') throw error
  // Whoever reads, such as `head`, has read enough.
  process.exit()
})

export function print(text: string): void {
  process.stdout.write(`${text}\n`)
}

/** Rows of the same members as columns under their names. */
export function table(rows: Record<string, unknown>[]): string {
  const names = Object.keys(rows[0] ?? {})
  const text = (value: unknown) => (value === null ? '-' : String(value))
  const widths = names.map((name) => Math.max(name.length, ...rows.map((row) => text(row[name]).length)))
  const line = (cells: string[]) =>
    cells
      .map((cell, index) => cell.padEnd(widths[index] ?? 0))
      .join('  ')
      .trimEnd()
  return [line(names), ...rows.map((row) => line(names.map((name) => text(row[name]))))].join('\n')
}
