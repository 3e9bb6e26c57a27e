/** The rules for migrations that expand the schema while earlier versions serve, as docs/adding-a-migration.md has them. */
import { type ColumnTypes, type SchemaMigration, statementsOf } from '../../src/storage/migrations/migrations.ts'

interface Rule {
  /** What the rule is about, in a statement without line breaks. */
  pattern: RegExp
  /** Returns why the statement disturbs earlier versions. */
  problem?(match: RegExpExecArray, created: ReadonlySet<string>): string | undefined
}

const literal = /^('[^']*'|-?\d+(\.\d+)?|NULL)$/i

const rules: readonly Rule[] = [
  {
    pattern: /^CREATE TABLE (\w+) (.*)/i,
    problem: ([, table = '', definition = ''], created) => {
      const references = [...definition.matchAll(/REFERENCES (\w+) ?(\([\w, ]*\))?( ON DELETE CASCADE)?/gi)]
      const strict = references.find(([, to = '', , cascades]) => to !== table && !created.has(to) && !cascades)
      return strict && `refers to ${strict[1]} without ON DELETE CASCADE, whose rows earlier versions delete`
    },
  },
  {
    pattern: /^CREATE (?:UNIQUE )?INDEX \w+ ON (\w+)/i,
    problem: ([, table = ''], created) =>
      created.has(table) ? undefined : `blocks writes to ${table} while it is built: declare it in \`indexes\``,
  },
  {
    pattern: /^ALTER TABLE \w+ ADD COLUMN \w+ (.*)/i,
    problem: ([, definition = '']) => {
      const constraint = /\b(REFERENCES|CHECK|UNIQUE|PRIMARY|GENERATED|CONSTRAINT)\b|,\s*ADD\b/i.exec(definition)
      if (constraint) return `has ${constraint[0]}`
      const [, value] = /\bDEFAULT (.*?)(?: (?:NOT )?NULL)?$/i.exec(definition) ?? []
      if (value !== undefined && !literal.test(value)) return 'has a default that is not constant'
      return value === undefined && /\bNOT NULL\b/i.test(definition) ? 'is NOT NULL without a default' : undefined
    },
  },
  { pattern: /^ALTER TABLE (\w+) SET \(/i },
  { pattern: /^CREATE (FUNCTION|TRIGGER) /i },
  {
    pattern: /^INSERT INTO (\w+)/i,
    problem: ([, table = ''], created) => (created.has(table) ? undefined : `writes to ${table}`),
  },
]

/** Returns what in the migration would disturb earlier versions that serve meanwhile and afterwards. */
export function findDisturbances(migration: SchemaMigration, types: ColumnTypes): string[] {
  if ('indexes' in migration) {
    return Object.entries(migration.indexes)
      .filter(([, definition]) => !/^ON \w+ \(/.test(definition))
      .map(([name]) => `${name}: begins with something else than ON and the table`)
  }
  const statements = statementsOf(migration, types).map((each) =>
    each.replaceAll(/--.*$/gm, '').replaceAll(/\s+/g, ' ').trim(),
  )
  const created = new Set(statements.flatMap((each) => /^CREATE TABLE (\w+)/i.exec(each)?.[1] ?? []))
  const problems = statements.flatMap((statement) => {
    const start = statement.slice(0, 60)
    const rule = rules.find(({ pattern }) => pattern.test(statement))
    if (!rule) return [`${start}: may change what earlier versions use`]
    const problem = rule.problem?.(rule.pattern.exec(statement) as RegExpExecArray, created)
    return problem ? [`${start}: ${problem}`] : []
  })
  const locked = statements.flatMap(
    (each) => /^(?:ALTER TABLE (\w+)|CREATE TRIGGER .*? ON (\w+))/i.exec(each)?.slice(1) ?? [],
  )
  const others = new Set(locked.filter((table) => table !== undefined && !created.has(table)))
  return others.size < 2 ? problems : [...problems, `locks ${[...others].join(' and ')}: make a migration for each`]
}
