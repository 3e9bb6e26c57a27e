/** The comparison of schemas agrees with what validation accepts, in 10,000 generated values for each kind of change. */
import { Ajv2020 } from 'ajv/dist/2020.js'
import addFormats from 'ajv-formats'
import { describe, expect, test } from 'vitest'
import { walk } from '../../../src/openapi/document.ts'
import { seededRandom } from '../../support/seeded-random.ts'
import { beyondValidation, kinds, type Schema } from './schema-changes.ts'

const valuesPerKind = 10_000

/** As the service validates: defaults are filled in. */
const ajv = new Ajv2020({ strict: false, useDefaults: true })
addFormats.default(ajv)

function accepts(v: Schema): (value: unknown) => boolean {
  const validate = ajv.compile({ properties: { v } })
  return (value) => validate({ v: structuredClone(value) })
}

/** Clients ignore unknown members. */
function ignoringMembers(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(ignoringMembers)
  if (typeof schema !== 'object' || schema === null) return schema
  const kept = Object.entries(schema).filter(
    ([name, value]) =>
      name !== 'maxProperties' && !(/^(additional|unevaluated)Properties$/.test(name) && value === false),
  )
  return Object.fromEntries(kept.map(([name, value]) => [name, ignoringMembers(value)]))
}

/** Values near those that the schemas name. */
function generator(schemas: Schema[], seed: number): () => unknown {
  const random = seededRandom(seed)
  const pick = <T>(list: readonly T[]): T => list[Math.floor(random() * list.length)] as T
  const named = [...walk(schemas)].map(({ value }) => value)
  const numbers = [0, ...named.filter((value) => typeof value === 'number')]
  const texts = ['', 'a', 'b', 'ab', 'ba', 'abc', '2026-01-01', 'a@b.example', ...named.filter(isText)]
  const names = ['a', 'b', 'ab', 'c', ...(JSON.stringify(schemas).includes('"kind"') ? ['kind', 'kind'] : [])]
  const scalars = [
    () => pick(numbers) + pick([-3, -2, -1, -0.5, 0, 0, 0.5, 1, 2, 3, 4]),
    () => pick(texts),
    () => pick([null, true, false]),
  ]
  const generate = (depth: number): unknown => {
    const kind = random()
    if (depth === 0 || kind < 0.4) return pick(scalars)()
    const scalar = pick(scalars)
    const member = random() < 0.5 ? scalar : () => generate(depth - 1)
    const size = Math.floor(random() * 4)
    if (kind < 0.6) return Array.from({ length: size }, member)
    return Object.fromEntries(Array.from({ length: size }, () => [pick(names), member()]))
  }
  return () => generate(2)
}

function isText(value: unknown): value is string {
  return typeof value === 'string' && value.length < 12
}

/** Values of the first schema that the second refuses, of those that `next` generates. */
function findRefused(from: Schema, to: Schema, next: () => unknown): unknown[] {
  const [isIn, isStillIn] = [accepts(from), accepts(to)]
  return Array.from({ length: valuesPerKind }, next).filter((value) => isIn(value) && !isStillIn(value))
}

describe('what breaks refuses a value that was accepted, and nothing else does', () => {
  test.each(kinds.map((kind, index) => ({ kind, index })))(
    '$kind.0',
    ({ kind: [title, before, after, breaks], index }) => {
      const next = generator([before, after], index + 1)
      const check = (member: 'variables' | 'output', refused: unknown[]) => {
        if (breaks !== 'both' && breaks !== member) expect(refused.slice(0, 3), member).toEqual([])
        else if (!beyondValidation[member].test(title)) expect(refused, member).not.toEqual([])
      }
      check('variables', findRefused(before, after, next))
      check('output', findRefused(after, ignoringMembers(before), next))
    },
  )
})
