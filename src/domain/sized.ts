/** What may be large: its size is known before it is read, so that a reader can wait until there is memory for it. */
export interface Sized<Value> {
  sizeBytes: number
  /** Drops what was read with the size, to keep nothing in memory while waiting. */
  forget(): void
  /** Whether it may be read over a network, which can take long. */
  isRemote?: boolean
  read(): Promise<Value>
}

/**
 * Reads when `reserve` has granted the bytes; it returns nothing when they may be read at once.
 *
 * @param unlock lets other large requests continue while what is remote is read.
 */
export async function readSized<Value>(
  reserve: (bytes: number) => Promise<void> | undefined,
  sized: Sized<Value>,
  unlock?: () => void,
): Promise<Value> {
  const granted = reserve(sized.sizeBytes)
  if (granted) {
    sized.forget()
    await granted
  }
  if (sized.isRemote) unlock?.()
  return sized.read()
}
