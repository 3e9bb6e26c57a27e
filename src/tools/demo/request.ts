/** One description of a request: the `curl` command that a person would type, and the same request made from here. */

export interface Request {
  method: 'GET' | 'PUT' | 'POST'
  url: string
  headers: Record<string, string>
  /** Sent as JSON. */
  body?: unknown
  /** The answer is shown as it arrives. */
  streamed?: boolean
}

/** Runnable as it is, in every POSIX shell. */
export function curlOf({ method, url, headers, body, streamed }: Request): string {
  const words = ['curl', ...(streamed ? ['-N'] : []), ...(method === 'GET' ? [] : ['-X', method]), quoted(url)]
  const options = Object.entries(headers).map(([name, value]) => `-H ${quoted(`${name}: ${value}`)}`)
  if (body !== undefined) options.push(`-d ${quoted(JSON.stringify(body))}`)
  return [words.join(' '), ...options.map((option) => `  ${option}`)].join(' \\\n')
}

export function send({ method, url, headers, body }: Request, signal: AbortSignal): Promise<Response> {
  return fetch(url, { method, headers, signal, ...(body !== undefined && { body: JSON.stringify(body) }) })
}

/** In single quotes nothing is special to a shell but the single quote itself. */
function quoted(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`
}
