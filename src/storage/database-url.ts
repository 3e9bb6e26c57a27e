/**
 * `DATABASE_URL` as libpq and the consoles of cloud providers write it, and its meaning for `pg`, which reads some of its
 * parameters in another way.
 */
import { readFileSync } from 'node:fs'

/** The URL cannot be used; the message says why without repeating it, since it may contain a password. */
export class DatabaseUrlError extends Error {}

const advice = 'set it to a URL such as postgres://user:password@host/database'

/** A part before the host with a character that ends it: everything after it would be read as something else. */
const unencoded = /^[^@]*?([#/?%])[^@]*@/

const defaultHost = 'localhost'

const sslModes = ['disable', 'allow', 'prefer', 'require', 'verify-ca', 'verify-full', 'no-verify']

/** Returns a URL that `URL` can read. @throws {DatabaseUrlError} */
export function readDatabaseUrl(text: string, name: string): string {
  const [, scheme, rest = ''] = /^(postgres(?:ql)?:\/\/)(.*)$/s.exec(text) ?? []
  const refuse = (problem: string) => new DatabaseUrlError(`${name} ${problem}.`)
  if (!scheme) throw refuse(`is invalid: ${advice}`)
  // A user and password without a host, such as `user:password@/database?host=/run/postgresql`.
  const filled = `${scheme}${rest.replace(/^([^@/?#]*@)(?=[/?]|$)/, `$1${defaultHost}`)}`
  const url = URL.parse(filled)
  if (!url || isMisread(url)) {
    const [, character] = unencoded.exec(rest.replaceAll(/%[0-9a-f]{2}/gi, '')) ?? []
    if (character) {
      const encoded = `%${character.charCodeAt(0).toString(16).toUpperCase()}`
      throw refuse(`has ${character} in its user name or password: write ${encoded} for each ${character}`)
    }
    if (/^([^/?#]*@)?[^/?#]*,/.test(rest)) throw refuse('names several hosts: set it to one that leads to the primary')
    throw refuse(`is invalid: ${advice}`)
  }
  const { searchParams } = url
  const mode = searchParams.get('sslmode')
  if (mode !== null && !sslModes.includes(mode))
    throw refuse(`has an unknown sslmode: set it to one of ${sslModes.slice(0, -1).join(', ')}`)
  if (mode === 'verify-ca' && !searchParams.has('sslrootcert'))
    throw refuse('has sslmode=verify-ca without sslrootcert: add the path of its certificate, or use verify-full')
  return url.href
}

/** Whether a part of the user name or password was read as another part of the URL. */
function isMisread({ username, password, host, pathname, search, hash }: URL): boolean {
  const isEncoded = (part: string) => !/%(?![0-9a-f]{2})/i.test(part)
  const hasFlag = search
    .slice(1)
    .split('&')
    .some((each) => each.split('=')[0]?.includes('@'))
  const isUsable = [username, password, pathname].every(isEncoded) && !host.includes(',')
  return !isUsable || hash !== '' || pathname.includes('@') || hasFlag
}

/** What `pg` connects with. */
interface DatabaseAddress {
  connectionString: string
  /** `undefined` if the parameters of the URL decide. */
  ssl?: false | { rejectUnauthorized: false }
}

/**
 * The meaning of `sslmode` is that of libpq, whereas `pg` takes all modes for `verify-full`.
 *
 * @param offersTls whether the server offers TLS; asked for the modes that use it where it does.
 */
export async function addressOf(text: string, offersTls: (url: URL) => Promise<boolean>): Promise<DatabaseAddress> {
  const url = new URL(text)
  const { searchParams } = url
  const mode = searchParams.get('sslmode')
  // Certificates of the system are those of Node.js.
  if (searchParams.get('sslrootcert') === 'system') searchParams.delete('sslrootcert')
  if (mode === 'prefer' || mode === 'allow') {
    for (const name of ['sslmode', 'sslrootcert']) searchParams.delete(name)
    return { connectionString: url.href, ssl: (await offersTls(url)) ? { rejectUnauthorized: false } : false }
  }
  if (mode !== null && mode !== 'no-verify') searchParams.set('uselibpqcompat', 'true')
  for (const name of ['sslrootcert', 'sslcert', 'sslkey']) requireReadable(name, searchParams.get(name))
  return { connectionString: url.href }
}

function requireReadable(name: string, path: string | null): void {
  try {
    if (path !== null) readFileSync(path)
  } catch (error) {
    throw new DatabaseUrlError(`The file of ${name} in DATABASE_URL cannot be read: ${(error as Error).message}.`)
  }
}

/** The host, or the directory of a Unix socket, and the port. */
export function endpointOf({ hostname, port, searchParams }: URL): { host: string; port: number } {
  const host = searchParams.get('host') || decodeURIComponent(hostname) || defaultHost
  return { host, port: Number(searchParams.get('port') || port || 5432) }
}
