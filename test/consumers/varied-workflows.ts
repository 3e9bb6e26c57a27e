/** Workflows whose names and schemas are hard for generators of clients, each with a call and what it returns. */

export interface VariedWorkflow {
  id: string
  title: string
  variables: object
  output: object
  waits?: Record<string, { title?: string; schema: object }>
  /** Variables of a call. */
  call: object
  /** What a run of the call returns. */
  result: unknown
  /** The TypeScript type that a generated client gives the output. */
  type: string
}

const text = { type: 'string' }

function object(properties: object, required = Object.keys(properties)): object {
  return { type: 'object', additionalProperties: false, required, properties }
}

export const variedWorkflows: VariedWorkflow[] = [
  {
    id: 'shape.area',
    title: 'A dot in the id',
    variables: object({ width: { type: 'number' }, height: { type: 'number' } }),
    output: object({ area: { type: 'number' } }),
    call: { width: 2, height: 3.5 },
    result: { area: 7 },
    type: '{ area: number }',
  },
  {
    id: 'close-comment',
    title: 'Ends */ a comment, and `${opens}` another /*',
    variables: object({ text: { type: 'string', description: 'Ends */ it.', pattern: '^a.*/b$' } }),
    output: { ...object({ text }), title: 'Out */ put' },
    call: { text: 'ax/b' },
    result: { text: 'ax/b' },
    type: '{ text: string }',
  },
  {
    id: 'constructor-member',
    title: 'A variable named constructor',
    // Not required, since axios sends no member of this name.
    variables: object({ constructor: text, class: text, 'kebab-name': text }, ['class', 'kebab-name']),
    output: object({ constructor: text, class: text }),
    call: { constructor: 'Ada', class: 'first', 'kebab-name': 'x' },
    result: { constructor: 'Ada', class: 'first' },
    type: '{ constructor: string; class: string }',
  },
  {
    id: 'status-kind',
    title: 'An enum and a constant together',
    variables: object({
      status: { allOf: [{ type: 'string', enum: ['open', 'closed'] }], description: 'Whether it is open.' },
    }),
    output: object({ status: { type: 'string', enum: ['open', 'closed'] }, kind: { type: 'string', const: 'ticket' } }),
    call: { status: 'open' },
    result: { status: 'open', kind: 'ticket' },
    type: "{ status: 'open' | 'closed'; kind: string }",
  },
  {
    id: 'pair',
    title: 'A closed tuple',
    variables: object({
      range: { type: 'array', prefixItems: [{ type: 'number' }, text], items: false, minItems: 2, maxItems: 2 },
    }),
    output: { type: 'array', prefixItems: [text, { type: 'number' }], items: false, minItems: 2, maxItems: 2 },
    call: { range: [1, 'a'] },
    result: ['a', 1],
    type: 'readonly unknown[]',
  },
  {
    id: 'contact',
    title: 'One of two shapes',
    variables: object({
      to: {
        oneOf: [
          object({ kind: { type: 'string', const: 'email' }, address: text }),
          object({ kind: { type: 'string', const: 'phone' }, number: text }),
        ],
      },
    }),
    output: { oneOf: [object({ sent: { type: 'boolean' } }), object({ refused: text })] },
    waits: { approval: { title: 'Send */ it?', schema: object({ approved: { type: 'boolean' } }) } },
    call: { to: { kind: 'phone', number: '1' } },
    result: { sent: true },
    type: '{ sent: boolean } | { refused: string }',
  },
  {
    id: 'nothing-or-name',
    title: 'Values that may be null',
    variables: object({ name: { type: ['string', 'null'] }, note: { type: ['integer', 'null'] } }),
    waits: { approval: { schema: { type: 'boolean' } }, 'Ist {es} #richtig?': { schema: object({ größe: text }) } },
    output: object({ name: { type: ['string', 'null'] }, items: { type: ['array', 'null'], items: text } }),
    call: { name: null, note: 3 },
    result: { name: null, items: ['a'] },
    type: '{ name: string | null; items: string[] | null }',
  },
  {
    id: 'moments',
    title: 'Dates and times',
    variables: object({ at: { type: 'string', format: 'date-time' }, day: { type: 'string', format: 'date' } }),
    output: object({ at: { type: 'string', format: 'date-time' }, id: { type: 'string', format: 'uuid' } }),
    call: { at: '2026-11-25T10:00:00Z', day: '2026-11-25' },
    result: { at: '2026-11-25T10:00:00Z', id: '3b241101-e2bb-4255-8caf-4136c566a962' },
    type: '{ at: string; id: string }',
  },
  {
    id: 'big-numbers',
    title: 'Integers of 64 bits',
    variables: object({
      count: { type: 'integer', format: 'int64', minimum: 0, maximum: Number.MAX_SAFE_INTEGER },
      digits: { type: 'string', pattern: '^[0-9]{1,40}$' },
    }),
    output: object({ count: { type: 'integer' }, digits: text }),
    call: { count: Number.MAX_SAFE_INTEGER, digits: '12345678901234567890' },
    result: { count: Number.MAX_SAFE_INTEGER, digits: '12345678901234567890' },
    type: '{ count: number; digits: string }',
  },
  {
    id: 'defaults',
    title: 'Members with defaults',
    variables: object({
      name: { type: 'string', default: 'Ada' },
      retries: { type: 'integer', default: 3 },
      must: text,
    }),
    output: object({ name: text, retries: { type: 'integer' } }),
    call: { must: 'x' },
    result: { name: 'Ada', retries: 3 },
    type: '{ name: string; retries: number }',
  },
  {
    id: 'X9',
    title: 'Größe, 大小 and “quotes”',
    variables: object({ größe: { type: 'number', description: 'Größe in ㎝ – "genau"' }, 名前: text }),
    output: object({ größe: { type: 'number' }, 名前: text }),
    call: { größe: 1.5, 名前: '太郎' },
    result: { größe: 1.5, 名前: '太郎' },
    type: '{ größe: number; 名前: string }',
  },
  {
    id: 'tree_2',
    title: 'A recursive schema with definitions',
    variables: {
      ...object({ root: { $ref: '#/$defs/node item' } }),
      $defs: { 'node item': object({ name: text, children: { type: 'array', items: { $ref: '#/$defs/node item' } } }) },
    },
    output: { type: 'array', items: text },
    call: { root: { name: 'a', children: [{ name: 'b', children: [] }] } },
    result: ['a', 'b'],
    type: 'string[]',
  },
]

/** The source of a module with the workflow. */
export function sourceOf({ call: _, type: __, result, ...described }: VariedWorkflow): string {
  const definition = JSON.stringify({ version: '1.0.0', ...described })
  return `import { defineWorkflow } from 'execution-service/workflow'
export default defineWorkflow({ ...${definition}, run: () => (${JSON.stringify(result)}) } as never)
`
}
