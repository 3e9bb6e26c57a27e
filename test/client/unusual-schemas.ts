/** Schemas whose types openapi-typescript would write too strictly, with variables that are valid and not valid. */
export const unusual: Record<string, { schema: object; valid: unknown[]; invalid: unknown[] }> = {
  'an open object': {
    schema: { required: ['a'], properties: { a: { type: 'string' } } },
    valid: [{ a: 'x', other: 1 }],
    invalid: [{ a: 1 }, {}],
  },
  'a required member without a schema': {
    schema: { required: ['a'] },
    valid: [{ a: 1 }, { a: null, b: 2 }],
    invalid: [{}],
  },
  'a required member with a default': {
    schema: { required: ['a'], properties: { a: { type: 'string', default: 'x' } } },
    valid: [{}, { a: 'y' }],
    invalid: [{ a: 1 }],
  },
  arrays: {
    schema: {
      properties: {
        any: { type: 'array' },
        pair: { type: 'array', prefixItems: [{ type: 'string' }, { type: 'number' }], items: false, minItems: 2 },
        start: { type: 'array', prefixItems: [{ type: 'string' }], minItems: 1 },
      },
    },
    valid: [{ any: [1, 'a'] }, { pair: ['a', 1] }, { start: ['a', 1, null] }],
    invalid: [{ any: 1 }, { pair: ['a'] }, { pair: [1, 'a'] }, { pair: ['a', 1, 2] }, { start: 'a' }],
  },
  maps: {
    schema: {
      properties: {
        any: { type: 'object' },
        counts: { type: 'object', additionalProperties: { type: 'integer' } },
        mixed: { type: 'object', properties: { a: { type: 'string' } }, additionalProperties: { type: 'integer' } },
        named: { type: 'object', patternProperties: { '^x-': { type: 'string' } }, additionalProperties: false },
      },
    },
    valid: [{ any: { a: 1 } }, { counts: { a: 1 } }, { mixed: { a: 'x', b: 1 } }, { named: { 'x-a': 'b' } }],
    invalid: [{ any: 1 }, { counts: { a: 'x' } }, { mixed: { a: 1 } }, { named: [] }],
  },
  'a closed composition': {
    schema: {
      allOf: [{ type: 'object', required: ['a'], properties: { a: { type: 'string' } } }],
      properties: { b: { type: ['number', 'null'] } },
      unevaluatedProperties: false,
    },
    valid: [
      { a: 'x', b: 1 },
      { a: 'x', b: null },
    ],
    invalid: [{ b: 1 }, { a: 'x', c: 1 }, { a: 'x', b: 'y' }],
  },
  'references, alternatives and constants': {
    schema: {
      additionalProperties: false,
      properties: {
        tree: { $ref: '#/$defs/tree' },
        choice: { oneOf: [{ const: 'all' }, { type: 'integer' }, { enum: [null, false] }] },
        titled: { $ref: '#/$defs/tree', title: 'A tree', required: ['next'] },
      },
      $defs: {
        tree: { type: 'object', additionalProperties: false, properties: { next: { $ref: '#/$defs/tree' }, leaf: {} } },
      },
    },
    valid: [
      { tree: { next: { next: { leaf: [1] } } } },
      { choice: 'all' },
      { choice: 1 },
      { choice: null },
      { titled: { next: {} } },
    ],
    invalid: [{ tree: { next: { nxt: {} } } }, { choice: 'none' }, { choice: true }, { titled: {} }],
  },
}
