/** What the examples may reach: the files of one directory, and public addresses. */
import dns from 'node:dns/promises'
import { once } from 'node:events'
import { mkdir, mkdtemp, realpath, rm, symlink, writeFile } from 'node:fs/promises'
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, onTestFinished, test, vi } from 'vitest'

const root = await realpath(await mkdtemp(join(tmpdir(), 'examples-')))
const directory = join(root, 'files')
await mkdir(join(directory, 'below'), { recursive: true })
Object.assign(process.env, { EXAMPLE_FILES_DIR: directory, EXAMPLE_PRIVATE_ADDRESSES: '127.0.0.1, [::1]:9' })
const { confinedPath } = await import('../../examples/workflows/access/files.ts')
const { fetchPublic, resolvePublic } = await import('../../examples/workflows/access/addresses.ts')
// They were read, and services of other test files in this process must not inherit them.
delete process.env.EXAMPLE_FILES_DIR
delete process.env.EXAMPLE_PRIVATE_ADDRESSES

afterAll(() => rm(root, { recursive: true }))

async function startServer(address: string, handle: RequestListener): Promise<number> {
  const server = createServer(handle)
  onTestFinished(() => void server.close().closeAllConnections())
  await once(server.listen(0, address), 'listening')
  return (server.address() as AddressInfo).port
}

test('paths inside the directory are resolved, also absolute ones and symbolic links', async () => {
  await writeFile(join(directory, 'below', 'text'), '')
  await symlink(join(directory, 'below'), join(directory, 'link'))
  for (const path of ['below/text', './below/../below/text', 'link/text', join(directory, 'below/text')]) {
    expect(await confinedPath(path)).toBe(join(directory, 'below', 'text'))
  }
  expect(await confinedPath('.')).toBe(directory)
})

test('a missing file is reported without the directory of the examples', async () => {
  await expect(confinedPath('missing')).rejects.toThrow(/^missing does not exist or cannot be read\.$/)
})

test('a path outside is refused, whether or not it exists', async () => {
  await writeFile(join(root, 'encryption.key'), '')
  await mkdir(join(root, 'files-of-others'))
  for (const path of ['..', '../encryption.key', '../missing', '/etc/passwd', '/', `${directory}-of-others`]) {
    await expect(confinedPath(path)).rejects.toThrow(/ is outside the directory of the examples\./)
  }
})

test('a symbolic link that leads outside is refused', async () => {
  await symlink(root, join(directory, 'up'))
  await symlink('/etc/passwd', join(directory, 'passwd'))
  for (const path of ['up', 'up/encryption.key', 'passwd']) {
    await expect(confinedPath(path)).rejects.toThrow(/ leads outside the directory of the examples\./)
  }
})

test.each([
  '0.0.0.0',
  '10.0.0.1',
  '100.100.100.200',
  '127.0.0.2',
  '168.63.129.16',
  '169.254.169.254',
  '172.16.0.1',
  '192.168.0.1',
  '[::]',
  '[::1]',
  '[::ffff:7f00:2]',
  '[64:ff9b::a00:1]',
  '[fc00::1]',
  '[fd00:ec2::254]',
  '[fe80::1]',
  '[fec0::1]',
  '2130706434',
])('the address %s is refused', async (host) => {
  await expect(fetchPublic(`http://${host}/`)).rejects.toThrow(
    / EXAMPLE_PRIVATE_ADDRESSES lists the private addresses /,
  )
})

test('public addresses are allowed, and private ones that the operator lists', async () => {
  for (const host of ['1.1.1.1', '[2606:4700::1111]', '127.0.0.1']) {
    expect(await resolvePublic(host, 80)).toBe(host.replace(/[[\]]/g, ''))
  }
  expect(await resolvePublic('[::1]', 9)).toBe('::1')
})

test('a name is refused if one of its addresses is private', async () => {
  const addresses = ['1.1.1.1', '10.0.0.1'].map((address) => ({ address, family: 4 }))
  vi.spyOn(dns, 'lookup').mockImplementation(async () => addresses as never)
  await expect(resolvePublic('example.com', 80)).rejects.toThrow(/^example\.com resolves to 10\.0\.0\.1: /)
  vi.restoreAllMocks()
})

test('a name that resolves to another address after the check is connected to at the checked one', async () => {
  const port = await startServer('127.0.0.1', (_, response) => response.end('checked'))
  const lookup = vi.spyOn(dns, 'lookup')
  lookup.mockImplementationOnce(async () => [{ address: '127.0.0.1', family: 4 }] as never)
  lookup.mockImplementation(async () => [{ address: '127.0.0.2', family: 4 }] as never)
  const response = await fetchPublic(`http://rebinding.example:${port}/`)
  expect(await response.text()).toBe('checked')
  expect(lookup).toHaveBeenCalledOnce()
  vi.restoreAllMocks()
})

test('a redirect does not lead to a private address', async () => {
  let requestCount = 0
  const inner = await startServer('127.0.0.2', (_, response) => response.end(String(++requestCount)))
  const location = `http://127.0.0.2:${inner}/`
  const outer = await startServer('127.0.0.1', (_, response) => response.writeHead(302, { location }).end())
  await expect(fetchPublic(`http://127.0.0.1:${outer}/`)).rejects.toThrow(/^127\.0\.0\.2 is not a public address/)
  expect(requestCount).toBe(0)
})
