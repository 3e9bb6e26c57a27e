/** Everything that comes, as an array: Array.fromAsync, which the compiler does not know yet. */
export async function allOf<Item>(items: AsyncIterable<Item>): Promise<Item[]> {
  const all: Item[] = []
  for await (const item of items) all.push(item)
  return all
}
