/** Webhook requests reach no address that is not public, and read no more than the beginning of a response. */
import { createSocket } from 'node:dgram'
import { lookup } from 'node:dns/promises'
import { once } from 'node:events'
import { readFile, writeFile } from 'node:fs/promises'
import { createServer, type RequestListener } from 'node:http'
import { type AddressInfo, BlockList } from 'node:net'
import { join } from 'node:path'
import { expect, type TestContext, test } from 'vitest'
import { readConfig } from '../../../src/config/config.ts'
import { findUrlError, isPublic, WebhookSender } from '../../../src/domain/webhooks/send-webhook.ts'
import { newDirectory } from '../../support/domain.ts'

const loopback = new BlockList()
loopback.addSubnet('127.0.0.0', 8)

async function startReceiver(test: TestContext, respond: RequestListener) {
  const server = createServer(respond)
  await once(server.listen(0, '127.0.0.1'), 'listening')
  test.onTestFinished(() => void server.close())
  test.onTestFinished(() => server.closeAllConnections())
  return (server.address() as AddressInfo).port
}

function open(
  test: TestContext,
  allowed: BlockList | undefined,
  options: ConstructorParameters<typeof WebhookSender>[1] = {},
) {
  const sender = new WebhookSender(allowed, options)
  test.onTestFinished(() => sender.close())
  const send = (url: string) => sender.send({ url, headers: { a: 'b' }, body: '{}' }, new AbortController().signal)
  return { send }
}

test.each([
  '127.0.0.1',
  '10.0.0.1',
  '172.16.0.1',
  '192.168.1.1',
  '100.64.0.1',
  '169.254.169.254',
  '168.63.129.16',
  '0.0.0.0',
  '224.0.0.1',
  '255.255.255.255',
  '192.0.2.1',
  '::1',
  '::',
  'fe80::1',
  'fd00::1',
  'ff02::1',
  '::ffff:127.0.0.1',
  '64:ff9b::7f00:1',
  '2002:7f00:1::',
  // The special-purpose registries of IANA.
  '192.0.0.8',
  '192.88.99.1',
  '198.18.0.1',
  '198.51.100.1',
  '203.0.113.1',
  '240.0.0.1',
  '64:ff9b:1::1',
  '100::1',
  '100:0:0:1::1',
  '2001::1',
  '2001:2::1',
  '2001:10::1',
  '2001:20::1',
  '2001:db8::1',
  '3fff::1',
  '3fff:fff:ffff::1',
  '5f00::1',
])('%s is not public', (address) => expect(isPublic(address)).toBe(false))

test.each(['93.184.215.14', '2606:2800:21f:cb07:6820:80da:af6b:8b2c'])('%s is public', (address) =>
  expect(isPublic(address)).toBe(true),
)

test('addresses that the operator allows are reached, others are refused at the connection', async (test) => {
  let requests = 0
  const port = await startReceiver(test, (_, response) => {
    requests += 1
    response.writeHead(204).end()
  })
  const [allowed, refused] = [open(test, loopback), open(test, undefined)]
  expect(await allowed.send(`http://127.0.0.1:${port}/a?b=c`)).toEqual({ status: 204, body: '', error: null })
  for (const host of ['127.0.0.1', 'localhost', '[::1]', '[::ffff:127.0.0.1]', '0x7f.1', '2130706433']) {
    const result = await refused.send(`http://${host}:${port}/`)
    expect(result, host).toEqual({
      status: null,
      body: null,
      error: expect.stringContaining('is not at a public address'),
    })
  }
  expect(requests).toBe(1)
})

test('redirects are not followed', async (test) => {
  const paths: (string | undefined)[] = []
  const port = await startReceiver(test, ({ url }, response) => {
    paths.push(url)
    response.writeHead(307, { Location: '/private' }).end()
  })
  const result = await open(test, loopback).send(`http://127.0.0.1:${port}/`)
  expect(result).toMatchObject({ status: 307, error: 'The response had the status 307.' })
  expect(paths).toEqual(['/'])
})

test('an endless response is read to 1,024 characters', async (test) => {
  const port = await startReceiver(test, (_, response) => {
    const write = () => {
      while (!response.destroyed && response.write('ü\0'.repeat(1000)));
    }
    response.on('drain', write)
    write()
  })
  const { body, error } = await open(test, loopback).send(`http://127.0.0.1:${port}/`)
  expect(error).toBeNull()
  expect(body).toBe('ü\uFFFD'.repeat(512))
})

test('a receiver that does not respond in time fails the attempt', async (test) => {
  const port = await startReceiver(test, () => {})
  const result = await open(test, loopback, { timeoutMilliseconds: 20 }).send(`http://127.0.0.1:${port}/`)
  expect(result).toEqual({ status: null, body: null, error: 'No response within 0.02 seconds.' })
})

/** A name server that never replies, and counts what it is asked. */
async function startSilentServer(test: TestContext) {
  const socket = createSocket('udp4')
  let count = 0
  socket.on('message', () => {
    count += 1
  })
  socket.bind(0, '127.0.0.1')
  await once(socket, 'listening')
  test.onTestFinished(() => void socket.close())
  return { servers: [`127.0.0.1:${socket.address().port}`], asked: () => count }
}

test('names that no server resolves delay no other request, look-up or file, and fail in the time of an attempt', async (test) => {
  const port = await startReceiver(test, (_, response) => response.writeHead(204).end())
  const { servers, asked } = await startSilentServer(test)
  const slow = open(test, loopback, { timeoutMilliseconds: 1000, servers })
  const ended: string[] = []
  const waiting = Array.from({ length: 20 }, (_, index) =>
    slow.send(`https://silent-${index}.example/`).then((result) => {
      ended.push('silent')
      return result
    }),
  )
  await expect.poll(asked).toBeGreaterThanOrEqual(20)
  expect(await open(test, loopback).send(`http://127.0.0.1:${port}/`)).toMatchObject({ status: 204 })
  await Promise.all([lookup('localhost'), readFile(import.meta.filename)])
  ended.push('others')
  for (const result of await Promise.all(waiting))
    expect(result).toMatchObject({ status: null, error: expect.any(String) })
  expect(ended[0]).toBe('others')
})

test('the error of a refused name contains no address', async (test) => {
  const { error } = await open(test, undefined).send('https://localhost/')
  expect(error).toBe('localhost is not at a public address, or one that WEBHOOK_PRIVATE_ADDRESSES allows.')
})

test('names of the hosts file are found without a name server', async (test) => {
  const { servers, asked } = await startSilentServer(test)
  const hosts = join(await newDirectory(test), 'hosts')
  await writeFile(hosts, '# a comment\n127.0.0.1\treceiver Receiver.internal # and one more\n')
  const port = await startReceiver(test, (_, response) => response.writeHead(204).end())
  const { send } = open(test, loopback, { servers, hosts })
  expect(await send(`http://receiver.INTERNAL:${port}/`)).toMatchObject({ status: 204 })
  expect(asked()).toBe(0)
})

test('an endpoint without https is refused unless the operator allows addresses', () => {
  expect(findUrlError('http://example.com/', undefined)).toMatch(/^must start with https:/)
  expect(findUrlError('http://receiver/', loopback)).toBeUndefined()
})

test('URLs with credentials, of other schemes, and with private addresses are refused', () => {
  expect(findUrlError('https://example.com/a', undefined)).toBeUndefined()
  expect(findUrlError('http://127.0.0.1/', loopback)).toBeUndefined()
  for (const url of [
    'ftp://a/',
    'https://a:b@c/',
    'https://10.0.0.1/',
    'https://[fd00::1]/',
    'http://93.184.215.14/',
  ]) {
    expect(findUrlError(url, loopback), url).toBeDefined()
  }
})

test('WEBHOOK_PRIVATE_ADDRESSES takes addresses and ranges', () => {
  const ranges = readConfig({ WEBHOOK_PRIVATE_ADDRESSES: '10.1.0.0/16, ::1' }).WEBHOOK_PRIVATE_ADDRESSES
  expect([ranges?.check('10.1.2.3'), ranges?.check('10.2.0.1'), ranges?.check('::1', 'ipv6')]).toEqual([
    true,
    false,
    true,
  ])
  for (const text of ['10.1.0.0/33', 'localhost', '10.1', '10.0.0.0/a', '10.0.0.0/']) {
    expect(() => readConfig({ WEBHOOK_PRIVATE_ADDRESSES: text })).toThrow('WEBHOOK_PRIVATE_ADDRESSES contains')
  }
})
