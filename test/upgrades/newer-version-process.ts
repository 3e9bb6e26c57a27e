/** The command line of the newer version: `node newer-version-process.ts start`. */
import { migrations } from '../../src/storage/migrations/migrations.ts'
import { newerMigrations } from './newer-version.ts'

migrations.push(...newerMigrations)
await import('../../src/main.ts')
