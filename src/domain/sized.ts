/** What may be large: its size is known before it is read, so that a reader can wait until there is memory for it. */
export interface Sized<Value> {
  sizeBytes: number
  /** Drops what was read with the size, to keep nothing in memory while waiting. */
  forget(): void
  read(): Promise<Value>
}

/** Reads when `reserve` has granted the bytes; it returns nothing when they may be read at once. */
export async function readSized<Value>(
  reserve: (bytes: number) => Promise<void> | undefined,
  sized: Sized<Value>,
): Promise<Value> {
  const granted = reserve(sized.sizeBytes)
  if (granted) {
    sized.forget()
    await granted
  }
  return sized.read()
}
