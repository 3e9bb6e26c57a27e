/** JSON that no door stores as a setting, and why. */
export const refusedSettings: readonly (readonly [text: string, detail: string])[] = [
  ['{"__proto__":1}', 'is not allowed'],
  ['"\\ud800"', 'must not contain a lone surrogate'],
  ['"\\u0000"', 'must not contain U+0000'],
  [`${'['.repeat(500)}${']'.repeat(500)}`, 'must not be nested more than 64 levels deep'],
  [`${'['.repeat(64)}${']'.repeat(64)}`, 'must not be nested more than 64 levels deep'],
  ['9007199254740993', 'is an integer that a double cannot hold: send it as a string'],
  ['1e400', 'must be within the range of a double'],
  ['{"a":1,"a":2}', 'must not have two members of the same name'],
  [`"${'x'.repeat(16_384)}"`, 'has more than 16384 characters as JSON'],
]
