/** The stand-in for curl behaves as curl does, for the options that it supports. */
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

/** Echoes requests; three digits at the end of the path set the response status. */
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
    const file = join(directory, 'response')
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
  'a body with the media type of a form': ['-d', '{"a": 1}', '/post'],
  'a body with its media type and method': ['-X', 'PUT', '-H', 'Content-Type: application/json', '-d', '{}', '/put'],
  'an uploaded file': ['-T', 'body.json', '/put'],
  'a response written to a file': ['-s', '-o', 'response', '/get'],
  'an unbuffered response with its headers': ['-sS', '-i', '-N', '/get'],
  'an error status without --fail': ['/get/404'],
  'an error status with --fail-with-body': ['--fail-with-body', '/get/404'],
  'an error status with output to a file': ['--fail-with-body', '-s', '-o', 'response', '/get/500'],
}

test.runIf(hasCurl).each(Object.entries(requests))('the stand-in behaves as curl does: %s', async (_, args) => {
  const full = args.map((arg) => (arg.startsWith('/') ? url + arg : arg))
  const [real, standIn] = await Promise.all([run(full), run(full, standInPath)])
  expect({ ...standIn, errors: '' }).toEqual({ ...real, errors: '' })
  expect(real.output + real.written).toMatch(/(GET|POST|PUT) \//)
})

test('both exit with 7 when the connection is refused', async () => {
  const closed = ['--fail-with-body', 'http://127.0.0.1:1/']
  expect((await run(closed, standInPath)).exitCode).toBe(7)
  if (hasCurl) expect((await run(closed)).exitCode).toBe(7)
})

test('the stand-in names an option that it does not support', async () => {
  const { exitCode, errors } = await run(['--retry', '3', url], standInPath)
  expect(exitCode).toBe(2)
  expect(errors).toContain('--retry')
})
