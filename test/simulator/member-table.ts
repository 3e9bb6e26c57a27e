/** Tables of the members of an object, from its JSON Schema, as the guide has them. */

type Schema = Record<string, unknown>

export function memberTable({ properties, required = [] }: Schema): string {
  const rows = Object.entries(properties as Record<string, Schema>).map(([name, schema]) => {
    const isRequired = (required as string[]).includes(name)
    return `| \`${name}\`${isRequired ? ' (required)' : ''} | ${describeValue(schema)} | ${schema.description} |`
  })
  return ['| member | value | meaning |', '| --- | --- | --- |', ...rows].join('\n')
}

function describeValue({ type, enum: values, minimum, maximum, format }: Schema): string {
  if (Array.isArray(values)) return values.map((each) => `\`${each}\``).join(', ')
  if (format === 'date-time') return 'time'
  const names = [type ?? 'any'].flat().map((each) => typeNames[String(each)] ?? String(each))
  const isNumber = names.some((name) => name === 'number' || name === 'integer')
  const range =
    isNumber && minimum !== undefined ? ` from ${minimum} to ${(maximum as number).toLocaleString('en')}` : ''
  return names.map((name) => (name === 'number' || name === 'integer' ? name + range : name)).join(' or ')
}

const typeNames: Record<string, string> = { string: 'text', boolean: 'true or false' }
