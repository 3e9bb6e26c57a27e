/** JSON that is the same for equal values: members are sorted, since their order has no meaning (RFC 8259, section 4). */
export function canonicalJson(json: unknown): string {
  return JSON.stringify(json, (_, value: unknown) => {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return value
    return Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)))
  })
}
