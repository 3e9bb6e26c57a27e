/** `/simulator/worlds`: makes worlds and ends them. All other paths of the management address are for one world. */
import { randomUUID } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { Problem } from '../contract/problem.ts'
import { Workflows } from '../domain/workflows/workflows.ts'
import { bodyBytesMax, bodyLimit, invalid, notFound, refuseOtherSites, sendProblem } from './control-problems.ts'
import { readNumber, timePattern } from './control-values.ts'
import { speedMax } from './driver.ts'
import { readCredential } from './front.ts'
import type { HostedWorld } from './hosted-world.ts'
import { ScenariosInvalid } from './scenario-errors.ts'
import { Scenarios } from './scenarios.ts'
import type { Scenario } from './scenarios-schema.ts'
import { type Control, type NewWorld, type Worlds, worldsMax } from './worlds.ts'

const path = '/simulator/worlds'
const keyPattern = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i
const seedLengthMax = 1000

export const controlWorlds: Control = async (worlds, request, response) => {
  try {
    await worlds.built()
    const [pathname = '', apiKey] = splitPath(request)
    if (pathname === path) {
      await answer(worlds, apiKey, request, response)
      return undefined
    }
    const credential = readCredential(request)
    const world = credential === undefined ? worlds.first : worlds.find(credential)
    if (!world) throw notFound('There is no world of this API key. It may have ended.')
    return world
  } catch (error) {
    sendProblem(response, error)
    return undefined
  }
}

/** The path, and the API key that follows it. */
function splitPath({ url = '/' }: IncomingMessage): [string, string | undefined] {
  const pathname = url.split('?')[0] ?? ''
  const [key] = pathname.startsWith(`${path}/`) ? pathname.slice(path.length + 1).split('/', 1) : []
  return key !== undefined && pathname === `${path}/${key}` ? [path, key] : [pathname, undefined]
}

async function answer(
  worlds: Worlds,
  apiKey: string | undefined,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  refuseOtherSites(request)
  const { method } = request
  if (apiKey === undefined && method === 'GET') {
    const data = [...worlds.list()].map(([key, world]) => describe(key, world))
    return sendJson(response, 200, { data })
  }
  if (apiKey === undefined && method === 'POST') {
    const text = await readText(request)
    // At once, so that no two worlds have the same key.
    const given = readNewWorld(worlds, text)
    const world = await worlds.create(given)
    if (!world)
      throw invalid([{ pointer: '', detail: `cannot have another world: ${worldsMax} exist, end one of them` }])
    return sendJson(response, 201, describe(given.apiKey, world))
  }
  if (apiKey !== undefined && method === 'DELETE') {
    const world = worlds.find(apiKey)
    if (!world) throw notFound('There is no world of this API key.')
    if (world === worlds.first)
      throw invalid([{ pointer: '', detail: 'names the first world, which ends with the simulator' }])
    await worlds.end(apiKey)
    return void response.writeHead(204).end()
  }
  throw notFound('The simulator has no such path or method.')
}

function describe(apiKey: string, world: HostedWorld): object {
  const { seed, now } = world.options
  const { dashboardUrl } = world.addresses
  return { apiKey, seed, startedAt: new Date(now).toISOString(), dashboardUrl, welcomeUrl: world.welcomeUrl ?? null }
}

function sendJson(response: ServerResponse, status: number, body: object): void {
  response.writeHead(status, { 'Content-Type': 'application/json; charset=utf-8' }).end(JSON.stringify(body))
}

const readers: { [Name in keyof NewWorld]: (value: unknown, worlds: Worlds) => NewWorld[Name] } = {
  apiKey(value, worlds) {
    if (typeof value !== 'string' || !keyPattern.test(value))
      throw invalid([{ pointer: '/apiKey', detail: 'must be a UUID' }])
    if (worlds.find(value)) throw invalid([{ pointer: '/apiKey', detail: 'is the key of another world' }])
    return value.toLowerCase()
  },
  now(value) {
    const time = typeof value === 'string' && timePattern.test(value) ? Date.parse(value) : Number.NaN
    if (Number.isNaN(time)) throw invalid([{ pointer: '/now', detail: 'must be a time such as 2026-01-31T12:00:00Z' }])
    return time
  },
  seed(value) {
    if (typeof value === 'string' && value.length <= seedLengthMax) return value
    throw invalid([{ pointer: '/seed', detail: `must be a text of at most ${seedLengthMax} characters` }])
  },
  speed: (value) => readNumber('/speed', value, speedMax),
  scenarios(value, worlds) {
    try {
      return Scenarios.from({ scenarios: value }, new Workflows(worlds.content.workflows.workflows)).toJSON()
        .scenarios as Scenario[]
    } catch (error) {
      if (!(error instanceof ScenariosInvalid)) throw error
      throw invalid(error.problems.map(({ pointer, detail }) => ({ pointer, detail })))
    }
  },
}

/** @throws {Problem} */
async function readText(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = []
  let length = 0
  // A request that is destroyed gets no response.
  for await (const chunk of request.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
    length += chunk.length
    if (length > bodyBytesMax) {
      request.resume()
      throw new Problem({ kind: 'content-too-large', detail: `The body is larger than ${bodyLimit}.` })
    }
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString()
}

function readNewWorld(worlds: Worlds, text: string): NewWorld {
  const members = text === '' ? {} : parse(text)
  return newWorld(worlds, members)
}

/** With the time and the scenarios of the first world by default. @throws {Problem} */
export function newWorld(worlds: Worlds, members: Readonly<Record<string, unknown>>): NewWorld {
  const { now, seed } = worlds.first.options
  const { scenarios } = worlds.content
  const apiKey = randomUUID()
  const given: Record<string, unknown> = {}
  for (const [name, value] of Object.entries(members)) {
    if (!Object.hasOwn(readers, name))
      throw invalid([{ pointer: `/${name}`, detail: `is unknown: use ${Object.keys(readers).join(', ')}` }])
    if (value !== undefined) given[name] = readers[name as keyof NewWorld](value, worlds)
  }
  return { apiKey, now, seed: `${seed}/${given.apiKey ?? apiKey}`, speed: 0, scenarios, ...given }
}

function parse(text: string): Record<string, unknown> {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (error) {
    throw invalid([{ pointer: '', detail: `is not JSON: ${(error as Error).message}` }])
  }
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Record<string, unknown>
  throw invalid([{ pointer: '', detail: 'must be an object' }])
}
