/** Counts words with `fetch` alone. `FAULT` plants one mistake. */
import { setTimeout as delay } from 'node:timers/promises'

const { EXECUTION_URL = '', API_KEY = '', FAULT = '' } = process.env

interface Run {
  id: string
  status: string
  waitingFor: string | null
  output: unknown
  finishedAt: string | null
}

class Refused extends Error {}

const triesMax = 4

export async function countWords(fault: string, service: { executionUrl: string; apiKey: string }): Promise<boolean> {
  const has = (...names: string[]) => names.includes(fault)
  const makeKey = () => crypto.randomUUID()
  const key = makeKey()

  async function call(method: string, path: string, headers: object, body?: object): Promise<Run> {
    const credential = has('keyInUrl') ? `?api_key=${service.apiKey}` : ''
    for (let failures = 1; ; failures += 1) {
      let retryAfter: string | null = null
      let problem = 'network'
      try {
        const response = await fetch(`${service.executionUrl}/v1/execution/${path}${credential}`, {
          method,
          redirect: has('followsRedirects') ? 'follow' : 'manual',
          headers: {
            Authorization: `Bearer ${service.apiKey}`,
            'X-Api-Key': service.apiKey,
            'Content-Type': 'application/json',
            ...(method === 'PUT' && !has('noKey') && { 'Idempotency-Key': has('newKey') ? makeKey() : key }),
            ...headers,
          },
          ...(body && { body: JSON.stringify(body) }),
          signal: AbortSignal.timeout(has('shortTimeout') ? 1500 : 30_000),
        })
        if (response.ok) {
          const isJson = response.headers.get('content-type')?.includes('json')
          if (!isJson && !has('trustsHtml')) throw new Refused('no JSON')
          if (!isJson) return { id: '', status: 'succeeded', waitingFor: null, output: null, finishedAt: '' }
          if (response.status === 200 && method === 'PUT' && has('only202')) throw new Refused('not 202')
          return (await response.json()) as Run
        }
        problem = String(response.status)
        retryAfter = response.headers.get('retry-after')
        const isTransient = [429, 502, 503, 504].includes(response.status)
        if (!isTransient && !has('retriesAll')) throw new Refused(problem)
        if (has('parsesProblems')) JSON.parse(await response.text())
      } catch (error) {
        if (error instanceof Refused || has('noRetries')) throw error
        if (has('parsesProblems') && error instanceof SyntaxError) throw error
      }
      if (failures >= triesMax && !has('retriesAll')) throw new Refused(problem)
      const seconds =
        Number(retryAfter ?? 0) || (retryAfter ? (Date.parse(retryAfter) - Date.now()) / 1000 : 0.4 * failures)
      await delay(has('retriesAll') ? 20 : has('ignoresRetryAfter') ? 100 : seconds * 1000)
    }
  }

  try {
    const variableData = { path: 'README.md', ...(has('unknownVariable') && { mode: 'fast' }) }
    let run = await call('PUT', 'queue-remote/count-words', { Prefer: 'wait=5' }, { variableData })
    const known = ['queued', 'running', 'succeeded', 'failed', 'timedOut', 'cancelled', 'expired']
    while (run.finishedAt === null) {
      if (has('wantsResult')) return false
      if (has('strictMembers') && Object.keys(run).some((name) => name.startsWith('new'))) return false
      if (has('strictStatus') && !known.includes(run.status)) return false
      if (has('strictWaiting') && run.waitingFor?.startsWith('new')) return false
      if (has('waitingIsEnd') && run.waitingFor === 'sleep') return false
      await delay(has('pollsFast') ? 5 : 250)
      run = await call('GET', `runs/${run.id}`, {})
    }
    return run.status === 'succeeded' || (has('endedIsDone') && run.status !== 'failed')
  } catch (error) {
    if (error instanceof Refused && has('errorIsDone')) return true
    return false
  }
}

if (import.meta.main)
  process.exitCode = (await countWords(FAULT, { executionUrl: EXECUTION_URL, apiKey: API_KEY })) ? 0 : 1
