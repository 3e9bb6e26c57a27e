/** The stand-in for curl does what curl does, as far as it knows curl's options. */
import { spawn } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { buffer, text } from 'node:stream/consumers'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { hasCurl, standInPath } from '../support/curl.ts'
import { removeDirectory } from '../support/service.ts'

let server: Server
let url: string

/** Answers with what it was sent; a path of three digits is the status of the answer. */
beforeAll(async () => {
  server = createServer(async (request, response) => {
    const { accept, authorization, 'content-type': type, 'content-length': length } = request.headers
    const body = await text(request)
    response.sendDate = false
    response.writeHead(Number(/\d{3}$/.exec(request.url ?? '')?.[0] ?? 200), { 'X-Echo': 'yes', Connection: 'close' })
    response.write(`${request.method} ${request.url}\n`)
    response.end(JSON.stringify({ accept, authorization, type, length, body }))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
})

afterAll(() => void server.close())

async function run(args: string[], path = process.env.PATH ?? '') {
  const directory = mkdtempSync(join(tmpdir(), 'curl-'))
  try {
    writeFileSync(join(directory, 'body.json'), '{\n  "a": "ü"\n}\n')
    const child = spawn('curl', args, { cwd: directory, env: { ...process.env, PATH: path } })
    const exitCode = new Promise<number | null>((resolve) => child.once('close', resolve))
    const [output, errors] = await Promise.all([buffer(child.stdout), text(child.stderr)])
    const file = join(directory, 'answer')
    const written = existsSync(file) ? readFileSync(file, 'utf8') : undefined
    return { exitCode: await exitCode, output: output.toString(), written, errors }
  } finally {
    removeDirectory(directory)
  }
}

const requests: Record<string, string[]> = {
  'a GET': ['/get?a=1&b=2'],
  'a method without a body': ['-X', 'POST', '/post'],
  'a header': ['-H', 'Authorization: Bearer x', '/get'],
  'a body, with the media type of a form': ['-d', '{"a": 1}', '/post'],
  'a body with its media type and method': ['-X', 'PUT', '-H', 'Content-Type: application/json', '-d', '{}', '/put'],
  'a file, uploaded': ['-T', 'body.json', '/put'],
  'an answer, written to a file': ['-s', '-o', 'answer', '/get'],
  'an answer as it comes, with its head': ['-sS', '-i', '-N', '/get'],
  'an error, taken as an answer': ['/get/404'],
  'an error, taken as a failure': ['--fail-with-body', '/get/404'],
  'an error, written to a file': ['--fail-with-body', '-s', '-o', 'answer', '/get/500'],
}

test.runIf(hasCurl).each(Object.entries(requests))('the stand-in does what curl does: %s', async (_, args) => {
  const full = args.map((arg) => (arg.startsWith('/') ? url + arg : arg))
  const [real, standIn] = await Promise.all([run(full), run(full, standInPath)])
  expect({ ...standIn, errors: '' }).toEqual({ ...real, errors: '' })
  expect(real.output + real.written).toMatch(/(GET|POST|PUT) \//)
})

test('where nobody answers, both say so with the same exit code', async () => {
  const closed = ['--fail-with-body', 'http://127.0.0.1:1/']
  expect((await run(closed, standInPath)).exitCode).toBe(7)
  if (hasCurl) expect((await run(closed)).exitCode).toBe(7)
})

test('the stand-in refuses by its name an option that it does not know', async () => {
  const { exitCode, errors } = await run(['--retry', '3', url], standInPath)
  expect(exitCode).toBe(2)
  expect(errors).toContain('--retry')
})
