/** The archive of a trace: which text is masked, and what is left when it is too large. */
import { randomBytes } from 'node:crypto'
import { strFromU8, strToU8, unzipSync, zipSync } from 'fflate'
import { expect, test } from 'vitest'
import { traceBytesMax } from '../../src/domain/runs/artifact.ts'
import { createRedactor } from '../../src/domain/workflows/redactor.ts'
import { buildEvidence, MaskedTrace } from '../../src/worker/evidence/build-evidence.ts'
import { secrets, spellings } from '../support/secret-spellings.ts'

const redactorOf = (texts: ReadonlySet<string>) => createRedactor({ texts: [...texts] })

function part(events: object[], files: Record<string, Uint8Array> = {}): Uint8Array {
  const lines = events.map((event) => JSON.stringify(event)).join('\n')
  return zipSync({ 'trace.trace': strToU8(lines), 'trace.network': strToU8(''), ...files }, { level: 0 })
}

/** The events of a call that fills in an element of this type; without a type, no snapshot shows the element. */
function fill(callId: string, value: string, type?: string): object[] {
  const html = ['HTML', {}, ['INPUT', { type, __playwright_target__: '', __playwright_value_: value }]]
  const snapshot = { type: 'frame-snapshot', snapshot: { callId, phase: 'after', html } }
  const before = { type: 'before', callId, method: 'fill', params: { selector: 'input', value } }
  return type === undefined ? [before] : [before, snapshot]
}

function textOf({ zip }: MaskedTrace): string {
  return Object.values(unzipSync(zip ?? new Uint8Array()))
    .map((data) => strFromU8(data))
    .join('\n')
}

test('typed text is shown only if a snapshot shows that its field takes no password', () => {
  const events = [
    ...fill('a', 'the user', 'text'),
    ...fill('b', 'the password', 'password'),
    ...fill('c', 'the unknown'),
  ]
  const keys = { type: 'before', callId: 'd', method: 'keyboardType', params: { text: 'the keys' } }
  const echo = { type: 'console', messageType: 'log', text: 'typed the password', location: { url: '' } }
  const trace = new MaskedTrace([part([...events, keys, echo])], redactorOf)
  const text = textOf(trace)
  expect(text).toContain('the user')
  for (const hidden of ['the password', 'the unknown', 'the keys']) expect(text).not.toContain(hidden)
  expect(trace.console).toEqual([{ level: 'log', text: 'typed ********', url: '' }])
})

test('text that was typed without a snapshot is masked wherever it occurs, also if it was typed key by key', () => {
  const press = (key: string, index: number) => ({
    type: 'before',
    callId: `press-${index}`,
    method: 'press',
    params: { key },
  })
  const echo = (text: string) => ({ type: 'console', messageType: 'log', text, location: { url: '' } })
  const calls = [...fill('a', 'before'), ...[...'pass-keys', 'Enter'].map(press)]
  const trace = new MaskedTrace([part([...calls, echo('before pass-keys Enter')])], redactorOf)
  expect(trace.console).toEqual([{ level: 'log', text: '******** ******** Enter', url: '' }])
  // The typed text is also the type of an event.
  expect(textOf(trace)).toContain('"type":"before"')
})

test('requests that were recorded apart from the trace are in its network, at the times of its clock', () => {
  const url = 'http://site/?access_token=the-token'
  const request = { method: 'GET', url, queryString: [{ name: 'access_token', value: 'the-token' }] }
  const snapshot = { request, response: { status: 404 }, _monotonicTime: 5010 }
  const clock = { type: 'context-options', wallTime: 5000, monotonicTime: 100 }
  const trace = new MaskedTrace([part([clock])], redactorOf, [{ type: 'resource-snapshot', snapshot }])
  expect(trace.failedRequests).toMatchObject([
    { method: 'GET', url: 'http://site/?access_token=********', status: 404 },
  ])
  const network = unzipSync(trace.zip ?? new Uint8Array())['0-trace.network'] ?? new Uint8Array()
  expect(JSON.parse(strFromU8(network)).snapshot._monotonicTime).toBe(110)
})

test('credentials of requests are masked by their place, and wherever else they occur', () => {
  const headers = [
    { name: 'Authorization', value: `Basic ${btoa('ada:engine number 1')}` },
    { name: 'Cookie', value: 'a=b' },
    { name: 'X-Auth', value: 'a-custom-credential' },
  ]
  const request = {
    url: 'http://site/?key=a-long-cookie',
    method: 'GET',
    headers,
    cookies: [{ name: 'a', value: 'a-long-cookie' }],
  }
  const snapshot = { request, response: { status: 500, headers: [{ name: 'Set-Cookie', value: 'a=b' }] } }
  const body = { 'resources/1.txt': strToU8('engine number 1'), 'resources/2.bin': new Uint8Array([255, 254, 0]) }
  const trace = new MaskedTrace([part([{ type: 'resource-snapshot', snapshot }], body)], redactorOf)
  const text = textOf(trace)
  for (const hidden of ['engine', 'a=b', 'a-long-cookie', 'a-custom-credential', btoa('ada')])
    expect(text).not.toContain(hidden)
  expect(Object.keys(unzipSync(trace.zip ?? new Uint8Array()))).not.toContain('resources/2.bin')
  expect(trace.failedRequests).toEqual([{ method: 'GET', url: 'http://site/?key=********', status: 500, error: null }])
})

test('fields whose names say that they are secret are masked, and their values in addresses and bodies', () => {
  const field = (name: string, value: string) => ({ name, value })
  const request = {
    url: 'http://site/?access_token=the-token&page=shown-page',
    method: 'POST',
    headers: [],
    queryString: [field('access_token', 'the-token'), field('page', 'shown-page')],
    postData: { params: [field('password', 'form-password')], text: 'password=form-password' },
  }
  const snapshot = { request, response: { status: 200, headers: [] } }
  const fetch = (callId: string, params: object) => ({ type: 'before', callId, method: 'fetch', params })
  const calls = [
    fetch('a', { formData: [field('pwd', 'sent-by-form')] }),
    fetch('b', { multipartData: [field('passphrase', 'sent-in-parts'), { name: 'passport', file: { name: 'scan' } }] }),
    fetch('c', { jsonData: '{"login":{"password":"sent-as-json"}}' }),
    fetch('d', { encodedParams: 'token=sent-in-address' }),
  ]
  const body = {
    'resources/1.txt': strToU8('undefined password=form-password'),
    'resources/2.json': strToU8('{"tokens":[{"access_token":"sent-as-answer","user":"shown-user"}]}'),
  }
  const text = textOf(new MaskedTrace([part([{ type: 'resource-snapshot', snapshot }, ...calls], body)], redactorOf))
  for (const shown of ['shown-page', 'shown-user', 'undefined', 'scan']) expect(text).toContain(shown)
  for (const hidden of ['the-token', 'form-password', 'sent-']) expect(text).not.toContain(hidden)
})

test('secret fields of bodies are masked where they are, and wherever a page shows them', () => {
  const body = (kind: string, name: string) => ({ [kind]: { mimeType: '', _file: `resources/${name}` } })
  const snapshots = ['1.dat', '2.dat', '3.dat'].map((name, index) => ({
    request: { url: 'http://site/', method: 'POST', headers: [], ...(index === 1 ? {} : body('postData', name)) },
    response: { status: 200, headers: [], ...(index === 1 ? body('content', name) : {}) },
  }))
  const parts = [
    ['user', 'shown-user'],
    ['my-password', 'sent & in parts'],
    ['otp"; filename="shown-scan.txt', 'shown-file'],
  ].map(([name, value]) => `--x\r\nContent-Disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`)
  const files = {
    'resources/1.dat': strToU8('user=shown-user&password=in+a+form%21&otp=123&token='),
    'resources/2.dat': strToU8('{"access_token":"in-an-answer","passwordLabel":"Your password","user":"shown-user"}'),
    'resources/3.dat': strToU8(`${parts.join('')}--x--\r\n`),
    'resources/4.html': strToU8('<p>in a form! in-an-answer sent &amp; in parts Your password</p>'),
  }
  const events = snapshots.map((snapshot) => ({ type: 'resource-snapshot', snapshot }))
  const archive = unzipSync(new MaskedTrace([part(events, files)], redactorOf).zip ?? new Uint8Array())
  const shown = Object.keys(files).map((name) => strFromU8(archive[name] ?? new Uint8Array()))
  expect(shown).toEqual([
    'user=shown-user&password=********&otp=********&token=',
    '{"access_token":"********","passwordLabel":"********","user":"shown-user"}',
    `${parts.join('').replace('sent & in parts', '********')}--x--\r\n`,
    '<p>******** ******** ******** Your password</p>',
  ])
})

test.each(Object.entries(spellings))(
  'secret variables are masked in evidence in the spelling of %s',
  (_name, spell) => {
    const texts = secrets.map((secret) => spell(secret))
    const events = texts.map((text) => ({ type: 'console', messageType: 'log', text, location: { url: text } }))
    const files = { 'resources/1.html': strToU8(texts.join('\n=\n')) }
    const raw = {
      collectedAt: Number.POSITIVE_INFINITY,
      pages: [],
      requests: [],
      stored: [],
      trace: [part(events, files)],
    }
    for (const { name, content } of buildEvidence(raw, { variables: secrets, restored: undefined }, 1)) {
      const all = name.endsWith('.zip')
        ? Object.values(unzipSync(content)).map((data) => strFromU8(data))
        : [String(content)]
      for (const text of texts) expect(all.join('\n')).not.toContain(JSON.stringify(text).slice(1, -1))
      expect(all.join('\n')).toContain('********')
    }
  },
)

test('the values that a site has stored are masked, but not its address', () => {
  const raw = {
    collectedAt: 0,
    pages: [{ url: 'https://shop.example/cart?s=a-session', title: 'Cart', screenshot: undefined }],
    trace: [],
    requests: [],
    stored: [
      {
        cookies: [{ name: 's', value: 'a-session', domain: 'shop.example', path: '/checkout', sameSite: 'Lax' }],
        origins: [{ origin: 'https://shop.example', localStorage: [{ name: 'user', value: 'a local value' }] }],
      },
    ],
  }
  const [summary] = buildEvidence(raw, { variables: [], restored: JSON.stringify(raw.stored[0]) }, 1)
  expect(JSON.parse(String(summary?.content)).pages[0].url).toBe('https://shop.example/cart?s=********')
})

test('of a trace that is too large, the last part wins', () => {
  const picture = randomBytes(3.6 * 1024 ** 2)
  const picturesOf = (number: number) => [1, 2, 3].map((index) => `resources/${number}-${index}.png`)
  const parts = [1, 2].map((number) => {
    return part([{ type: 'log' }], Object.fromEntries(picturesOf(number).map((name) => [name, picture])))
  })
  const { zip = new Uint8Array() } = new MaskedTrace(parts, redactorOf)
  const names = Object.keys(unzipSync(zip))
  expect(zip.length).toBeLessThanOrEqual(traceBytesMax)
  expect(names).toEqual(expect.arrayContaining(picturesOf(2)))
  expect(names).not.toEqual(expect.arrayContaining(picturesOf(1)))
})
