/** Suggestions for names that were mistyped. */

/** The name that differs least; `undefined` if all differ by more than a third of their characters. */
export function closestName(typed: string, names: readonly string[]): string | undefined {
  const distances = names.map((name) => ({ name, distance: distanceOf(typed.toLowerCase(), name.toLowerCase()) }))
  const [best] = distances.sort((a, b) => a.distance - b.distance)
  return best && best.distance <= Math.max(1, Math.floor(best.name.length / 3)) ? best.name : undefined
}

/** A question if a name is similar, or else all names. @param what they name, in the plural. */
export function suggest(typed: string, names: readonly string[], what: string): string {
  const closest = closestName(typed, names)
  if (closest !== undefined) return `did you mean "${closest}"?`
  if (names.length === 0) return `there are no ${what}`
  const shown = names.slice(0, shownMax).map((name) => `"${name}"`)
  return `the ${what} are ${shown.join(', ')}${names.length > shownMax ? ' and others' : ''}`
}

const shownMax = 20
const lengthMax = 200

/** Characters to insert, delete or replace (Levenshtein), or neighbours to exchange. */
function distanceOf(a: string, b: string): number {
  if (a.length > lengthMax || b.length > lengthMax) return Number.POSITIVE_INFINITY
  let before: number[] = []
  let row = Array.from({ length: b.length + 1 }, (_, index) => index)
  for (let i = 1; i <= a.length; i++) {
    const next = [i]
    for (let j = 1; j <= b.length; j++) {
      const replaced = (row[j - 1] as number) + (a[i - 1] === b[j - 1] ? 0 : 1)
      const isExchanged = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]
      const exchanged = isExchanged ? (before[j - 2] as number) + 1 : replaced
      next.push(Math.min((row[j] as number) + 1, (next[j - 1] as number) + 1, replaced, exchanged))
    }
    before = row
    row = next
  }
  return row.at(-1) as number
}
