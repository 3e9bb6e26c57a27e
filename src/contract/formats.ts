/** String formats that JSON Schema validators take less strictly than the documents mean them. */

const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i

const moment =
  /^\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])T([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d+)?(Z|[+-]([01]\d|2[0-3]):[0-5]\d)$/i

export const formats = {
  /** Without the `urn:uuid:` that ajv-formats accepts before it. */
  uuid: (text: string) => uuid.test(text),
  /**
   * RFC 3339, section 5.6, as far as a Date can represent it. ajv-formats also accepts the offset `+01` and the second
   * 60, of which `Date` makes NaN; in its fast mode even February 31st, of which `Date` makes March.
   */
  'date-time': (text: string) => moment.test(text) && isDay(text.slice(0, 10)),
}

function isDay(date: string): boolean {
  return date.slice(8) <= '28' || new Date(date).getUTCDate() === Number(date.slice(8))
}
