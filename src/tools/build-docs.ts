/** `npm run docs`: writes the site to dist/docs, where it can be opened without a server. */
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { docsSite } from '../surfaces/docs/site.ts'

const directory = fileURLToPath(new URL('../../dist/docs', import.meta.url))

const site = await docsSite()
rmSync(directory, { recursive: true, force: true })
mkdirSync(directory, { recursive: true })
for (const [name, { content }] of site) writeFileSync(join(directory, name), content)
process.stdout.write(`Wrote ${site.size} files. Open ${join(directory, 'index.html')}\n`)
