/** Writes everything that an account has to a directory: a file of JSON lines for each table, and files for contents. */
import { once } from 'node:events'
import { createWriteStream } from 'node:fs'
import { appendFile, mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type AccountRow, type AccountTable, accountTables, readAccountRows } from '../../storage/account-rows.ts'
import type { Contents } from '../../storage/blobs/contents.ts'
import type { EncryptedColumn } from '../../storage/encrypted-columns.ts'
import type { ValueEncryption } from '../../storage/encryption.ts'
import type { Store } from '../../storage/store.ts'
import { operator, recordAudit } from '../audit-log/audit-log.ts'
import { SnapshotDamaged } from '../deployments/snapshot.ts'

export interface ExportOptions {
  /** All encrypted columns of the store. */
  columns: readonly EncryptedColumn[]
  /** Decrypts secrets, cookies and results of steps. Without it they are left out. */
  encryption: ValueEncryption | undefined
  /** The files of a deployment. */
  readFiles(deploymentId: string): Promise<{ files: readonly ExportedFile[] } | undefined>
  contents: Pick<Contents, 'readBlob'>
  now: number
}

interface ExportedFile {
  path: string
  content: string
  encoding?: 'base64' | undefined
}

/** What `export.json` says. */
export interface ExportSummary {
  accountId: string
  exportedAt: string
  /** Whether secrets are decrypted, or left out. */
  withSecrets: boolean
  /** Lines of each file. */
  lines: Record<string, number>
  /** Files of artifacts, uploaded files, and files of deployments. */
  files: number
}

/**
 * Reads table by table while the service runs. What is written meanwhile may be missing.
 *
 * @param directory is empty, and for the user alone.
 */
export async function exportAccount(
  store: Store,
  accountId: string,
  directory: string,
  options: ExportOptions,
): Promise<ExportSummary> {
  if (options.encryption)
    await store.write((tx) => recordAudit(tx, accountId, { action: 'account.exported', by: operator, at: options.now }))
  const lines: Record<string, number> = {}
  let files = 0
  for (const table of accountTables.toReversed()) {
    const name = `${toMember(table.name)}.jsonl`
    const file = new LineFile(join(directory, name))
    const encrypted = options.columns.filter((column) => column.table === table.name)
    const expressions = Object.fromEntries(encrypted.flatMap(aadExpressions))
    for await (const row of readAccountRows(store.read, table, accountId, expressions)) {
      const contents = await writeContents(directory, table, row, options)
      files += contents.files?.length ?? 0
      await file.write(toLine(table, row, encrypted, options.encryption, contents))
    }
    await file.close()
    if (file.lines > 0) lines[name] = file.lines
  }
  const exportedAt = new Date(options.now).toISOString()
  const summary = { accountId, exportedAt, withSecrets: options.encryption !== undefined, lines, files }
  await writeFile(join(directory, 'export.json'), `${JSON.stringify(summary, null, 2)}\n`, { mode: 0o600 })
  return summary
}

/** A file that is created with its first line. */
class LineFile {
  readonly #path: string
  #stream: ReturnType<typeof createWriteStream> | undefined
  #error: Error | undefined
  lines = 0

  constructor(path: string) {
    this.#path = path
  }

  async write(line: object): Promise<void> {
    this.#stream ??= this.#create()
    this.lines += 1
    const isFull = !this.#stream.write(`${JSON.stringify(line)}\n`)
    if (isFull && !this.#error) await once(this.#stream, 'drain')
    if (this.#error) throw this.#error
  }

  async close(): Promise<void> {
    if (!this.#stream) return
    this.#stream.end()
    if (!this.#stream.closed) await once(this.#stream, 'close')
    if (this.#error) throw this.#error
  }

  #create() {
    const stream = createWriteStream(this.#path, { flags: 'wx', mode: 0o600 })
    stream.on('error', (error) => {
      this.#error = error
    })
    return stream
  }
}

/** The files of a row, as its line names them, or why there are none. */
interface WrittenContents {
  files?: string[]
  filesProblem?: string
}

/** Writes the content of an artifact, a part of a file, or the files of a deployment. */
async function writeContents(
  directory: string,
  { name }: AccountTable,
  row: AccountRow,
  { readFiles, contents }: ExportOptions,
): Promise<WrittenContents> {
  if (name === 'artifacts') {
    const path = join('artifacts', String(row.run_id), encodeURIComponent(String(row.name)))
    const content = row.blob
      ? await contents.readBlob(String(row.blob), 0, Number(row.size_bytes))
      : (row.content as Uint8Array)
    if (!content) return { filesProblem: 'The content is missing where ARTIFACTS_URL says.' }
    await writeNested(directory, path, content)
    return { files: [path] }
  }
  if (name === 'file_parts') return writePart(directory, row, contents)
  if (name !== 'deployments' || row.is_remote === 1) return {}
  try {
    const files: string[] = []
    for (const file of (await readFiles(String(row.id)))?.files ?? []) {
      const path = join('deployments', String(row.id), file.path)
      await writeNested(directory, path, Buffer.from(file.content, file.encoding ?? 'utf8'))
      files.push(path)
    }
    return { files }
  } catch (error) {
    // The rest of the account can be exported without them.
    if (error instanceof SnapshotDamaged) return { filesProblem: error.message }
    throw error
  }
}

/** Appends to the file: the parts of each are read in their order. */
async function writePart(directory: string, row: AccountRow, contents: ExportOptions['contents']) {
  const path = join('files', String(row.file_id))
  const bytes = Number(row.size_bytes)
  const content = row.blob ? await contents.readBlob(String(row.blob), 0, bytes) : (row.content as Uint8Array)
  if (!content) return { filesProblem: 'The content is missing where ARTIFACTS_URL says.' }
  await mkdir(join(directory, 'files'), { recursive: true, mode: 0o700 })
  await appendFile(join(directory, path), content, { mode: 0o600 })
  return row.position === 0 ? { files: [path] } : {}
}

async function writeNested(directory: string, path: string, content: Uint8Array): Promise<void> {
  const file = join(directory, path)
  await mkdir(join(file, '..'), { recursive: true, mode: 0o700 })
  await writeFile(file, content, { mode: 0o600, flag: 'wx' })
}

// The members of a line.

/** What the associated data of a column's values consists of, by names that no column has. */
function aadExpressions({ column, aadColumns }: EncryptedColumn): [member: string, sql: string][] {
  return aadColumns.map((sql, index) => [`${column} ${index}`, sql])
}

/** The row with its members in camel case, times as ISO 8601 and JSON as such. */
function toLine(
  table: AccountTable,
  row: AccountRow,
  encrypted: readonly EncryptedColumn[],
  encryption: ValueEncryption | undefined,
  contents: WrittenContents,
): object {
  const members = Object.entries(row).flatMap(([column, value]) => {
    if (table.hidden?.includes(column) || column.includes(' ')) return []
    if (!(value instanceof Uint8Array)) return [[toMember(column), toValue(table, column, value)]]
    const found = encrypted.find((each) => each.column === column)
    if (!found || !encryption) return []
    const aad = found.aad(...aadExpressions(found).map(([member]) => String(row[member])))
    return [[toMember(column), parseIfJson(encryption.decrypt(value, aad))]]
  })
  return { ...Object.fromEntries(members), ...contents }
}

function toValue({ json }: AccountTable, column: string, value: string | number | null): unknown {
  if (value === null) return null
  if (typeof value === 'number') return isTime(column) ? new Date(value).toISOString() : value
  return json?.includes(column) ? parseIfJson(value) : value
}

const isTime = (column: string) => /(^|_)at$|^deadline$|_for$|_until$/.test(column)

function parseIfJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}

/** In camel case: `run_id` as `runId`. */
function toMember(name: string): string {
  return name.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase())
}
