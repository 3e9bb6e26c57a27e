/** The files of a recorded trace. They have secrets, so that none of them may remain. */
import { existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { BrowserContext } from 'playwright-core'
import { expect, onTestFinished, test, vi } from 'vitest'
import { EvidenceRecorder } from '../../src/worker/evidence/recorder.ts'

test('a trace leaves no files', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'evidence-recorder-'))
  vi.stubEnv('TMPDIR', directory)
  onTestFinished(() => {
    vi.unstubAllEnvs()
    rmSync(directory, { recursive: true })
  })
  let path = ''
  const tracing = {
    start: () => Promise.resolve(),
    stop: async (options: { path: string }) => {
      path = options.path
      writeFileSync(path, 'a part')
    },
  }
  const context = { tracing, pages: () => [], storageState: async () => ({}) } as unknown as BrowserContext
  const recorder = await EvidenceRecorder.start(context, 'pictures')
  const raw = await recorder?.collect()
  await recorder?.discard()
  expect(String(Buffer.from(raw?.trace[0] ?? []))).toBe('a part')
  expect(existsSync(path)).toBe(false)
  expect(readdirSync(directory)).toEqual([])
})
