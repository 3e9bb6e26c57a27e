/**
 * What any door stores, the API returns. For each member that callers or people choose, the limits of its schema, one
 * beyond, and odd values are stored by the API, by the dashboard, and by the domain, which commands, called runs and tools
 * of agents use. Each is refused, or the API returns it.
 */
import { v7 as uuid } from 'uuid'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { Problem } from '../../src/contract/problem.ts'
import { operator } from '../../src/domain/audit-log/audit-log.ts'
import { parseWorkflow, WorkflowError } from '../../src/domain/workflows/workflow.ts'
import { type Document, resolve, type Schema } from '../../src/openapi/document.ts'
import { browserContextContract, executionContract } from '../../src/openapi/served-documents.ts'
import {
  type DashboardService,
  type Form,
  type SignedInUser,
  signIn,
  startDashboardService,
} from '../support/dashboard.ts'
import { fieldError } from '../support/html.ts'
import { refusedSettings } from '../support/refused-settings.ts'

let dashboard: DashboardService
let ada: SignedInUser
let key: string
let contextId: string

beforeAll(async () => {
  dashboard = await startDashboardService()
  await dashboard.domain.workflows.refresh()
  ada = await signIn(dashboard)
  const given = {
    accountId: ada.accountId,
    userId: ada.id,
    name: 'doors',
    scopes: null,
    workflowIds: null,
    expiresAt: null,
  }
  key = (await dashboard.domain.apiKeys.create(given, operator)).value
  contextId = (await dashboard.domain.browserContexts.create(ada.accountId, 'Shop'))?.id ?? ''
})

afterAll(() => dashboard.stop())

type Value = Record<string, unknown>
/** Returns whether the value was stored. */
type Door = (value: Value) => Promise<boolean>

const odd = ['', ' ', 'a b', 'ü', '\n', '\0', '\ud800', '__proto__', 'constructor', '🦊'.repeat(101), `a${'\u202e'}b`]
const oddHosts = [
  `https://${'ü.'.repeat(1000)}example`,
  'https://xn--tda.example/ü?ü',
  `https://${'a'.repeat(254)}.example`,
]

/** The limits of a schema, one beyond, and values of other kinds. */
function edgesOf(document: Document, schema: Schema): unknown[] {
  const resolved = resolve<Schema>(document, schema)
  const { type, minLength, maxLength, minimum, maximum, maxItems, items, oneOf, allOf, example } = resolved
  const { properties, required } = resolved
  const [first] = [oneOf ?? allOf ?? []].flat() as Schema[]
  if (first) return [...edgesOf(document, first), null]
  if (Array.isArray(resolved.enum)) return [...resolved.enum, 'other', '']
  const beside = (limits: unknown[], step: number) =>
    limits.flatMap((each) => (typeof each === 'number' ? [each, each + step] : []))
  if (type === 'integer' || type === 'number')
    return [...beside([minimum], -1), ...beside([maximum], 1), 0.5, Number.MAX_SAFE_INTEGER, '7']
  if (type === 'array') {
    const [item = ''] = edgesOf(document, items as Schema).filter((each) => each !== '')
    const all = resolve<Schema>(document, items as Schema).enum ?? []
    const longest = Array.from({ length: Number(maxItems) + 1 }, (_, index) => `${item}${index}`)
    const ofItems = edgesOf(document, items as Schema).map((each) => [each])
    return [[], all, ...ofItems, longest, longest.slice(1), [item, item]]
  }
  if (type === 'boolean') return [true, false]
  if (type === 'object' && properties) {
    const members = Object.entries(properties as Record<string, Schema>)
    const edges = new Map(members.map(([name, member]) => [name, edgesOf(document, member)]))
    const needed = Object.fromEntries([required ?? []].flat().map((name) => [name, edges.get(String(name))?.[0]]))
    return [...edges].flatMap(([name, values]) => values.map((value) => ({ ...needed, [name]: value })))
  }
  const lengths = [minLength, maxLength].flatMap((each) => (typeof each === 'number' ? [each, each + 1] : []))
  const fitting = typeof example === 'string' ? [example] : []
  return [...fitting, ...lengths.map((length) => 'A'.repeat(length)), ...odd, ...oddHosts]
}

const documents = { execution: executionContract.document, 'browser-context': browserContextContract.document }
type Api = keyof typeof documents

async function call(api: Api, method: string, path: string, body?: unknown) {
  const address = api === 'execution' ? dashboard.executionUrl : dashboard.browserContextUrl
  const headers = { Authorization: `Bearer ${key}`, 'x-service-api-key': key, 'Content-Type': 'application/json' }
  const response = await fetch(address + path, {
    method,
    headers,
    ...(body !== undefined && { body: JSON.stringify(body) }),
  })
  const text = await response.text()
  return { status: response.status, body: text === '' ? undefined : JSON.parse(text) }
}

const byApi =
  (api: Api, method: string, path: (value: Value) => string, body = (value: Value): unknown => value): Door =>
  async (value) => {
    const { status } = await call(api, method, path(value), body(value))
    expect([200, 201, 202, 400, 404]).toContain(status)
    return status < 300
  }

const byForm =
  (path: string, toForm: (value: Value) => Form): Door =>
  async (value) => {
    const { status } = await ada.visitor.post(path, toForm(value))
    expect([200, 303, 400]).toContain(status)
    return status < 400
  }

/** @param store returns errors, or throws a `Problem`, for what it refuses. */
const byDomain =
  (store: (value: Value) => Promise<unknown>): Door =>
  async (value) => {
    try {
      const { kind, errors } = Object(await store(value))
      return errors === undefined && kind !== 'noSuchWorkflow'
    } catch (error) {
      expect(error).toBeInstanceOf(Problem)
      return false
    }
  }

const toText = (value: unknown) => (Array.isArray(value) ? value.join(' ') : value === null ? '' : String(value))
const toTexts = (value: Value) => Object.fromEntries(Object.entries(value).map(([name, each]) => [name, toText(each)]))

interface Subject {
  api: Api
  schema: string
  /** With which a value is accepted. */
  valid: Value
  /** Members that have other rules. */
  except?: readonly string[]
  doors: Readonly<Record<string, Door>>
  list: string | (() => string)
  /** What is stored is deleted, so that no limit on its number is reached. */
  remove?: (stored: { id: string; name: string }) => string
}

const v1 = '/v1/execution'
const variables = { name: 'Ada' }
const by = operator
/** The first that is stored, created if needed. */
async function first(list: string, valid: Value): Promise<string> {
  const { body } = await call('execution', 'GET', list)
  return body.data[0]?.id ?? (await call('execution', 'POST', list, valid)).body.id
}

/** Replaces the member of something that is stored. */
function byChange(list: string, valid: Value): Door {
  return async (value) => {
    const id = await first(list, valid)
    const changed = Object.entries(value).filter(([name, each]) => each !== valid[name])
    return byApi(
      'execution',
      'PATCH',
      () => `${list}/${id}`,
      () => Object.fromEntries(changed),
    )(value)
  }
}

const endpoint = { url: 'https://example.com/hooks', events: ['run.failed'] }
const rule = { name: 'Failures', events: ['run.failed'], channel: 'slack', url: 'https://example.com/services/T0' }
const schedule = { workflowId: 'greet', variableData: variables, cron: '0 7 * * *' }

const signInVariables = { user: 'ada', password: 'canary-of-a-password' }

/** Stores a file, and reads it back. */
const byFile =
  (create: (file: { name: string; mediaType: string }) => Promise<string | undefined>): Door =>
  async ({ name, mediaType }) => {
    const id = await create({ name: toText(name), mediaType: toText(mediaType) })
    if (id === undefined) return false
    const headers = { Authorization: `Bearer ${key}` }
    const { status } = await fetch(`${dashboard.executionUrl}${v1}/files/${id}`, { headers })
    expect([name, mediaType, status]).toEqual([name, mediaType, 200])
    return true
  }

/** @param url for the name, which is added. */
async function upload(url: string, headers: Record<string, string>, { name, mediaType }: Record<string, string>) {
  const response = await fetch(`${url}?name=${encodeURIComponent(String(name).toWellFormed())}`, {
    method: 'POST',
    headers: { ...headers, 'Content-Type': String(mediaType) },
    body: 'content',
  })
  expect([200, 201, 400, 415]).toContain(response.status)
  return response.ok ? response.text() : undefined
}

const subjects: Subject[] = [
  {
    api: 'browser-context',
    schema: 'SetSignInRequest',
    valid: { workflowId: 'sign-in', variableData: signInVariables },
    except: ['variableData'],
    doors: {
      api: byApi('browser-context', 'PUT', () => `/alpha/browser-contexts/${contextId}/sign-in`),
      form: (value) =>
        byForm(`/browser-contexts/${contextId}/sign-in`, ({ variableData: _, ...given }) => ({
          ...{ ...toTexts(given), 'variable-user': 'ada', 'variable-password': signInVariables.password },
        }))(value),
      domain: byDomain(({ variableData: _, ...given }) => {
        const signIn = { ...given, variables: { ...signInVariables } } as never
        return dashboard.domain.signIns.set(ada.accountId, contextId, signIn, by)
      }),
    },
    list: () => `/alpha/browser-contexts/${contextId}/sign-in`,
  },
  {
    api: 'execution',
    schema: 'StoredFile',
    valid: { name: 'invoice.pdf', mediaType: 'application/pdf' },
    except: ['id', 'bytes', 'sha256', 'createdAt', 'expiresAt'],
    doors: {
      api: byFile(async (file) => {
        const isHeader = /^[ -~]+$/.test(file.mediaType)
        const headers = { Authorization: `Bearer ${key}` }
        const stored = isHeader && (await upload(`${dashboard.executionUrl}${v1}/files`, headers, file))
        return stored ? JSON.parse(stored).id : undefined
      }),
      domain: byFile(async (file) => {
        const content = (async function* () {
          yield Buffer.from('content')
        })()
        try {
          return (await dashboard.domain.files.create(ada.accountId, { ...file, content }, by)).id
        } catch (error) {
          expect(error).toBeInstanceOf(Problem)
          return undefined
        }
      }),
    },
    list: `${v1}/workflows`,
  },
  {
    api: 'execution',
    schema: 'CreateWebhookEndpointRequest',
    valid: endpoint,
    doors: {
      api: byApi('execution', 'POST', () => `${v1}/webhook-endpoints`),
      change: byChange(`${v1}/webhook-endpoints`, endpoint),
      form: byForm('/webhooks/new', ({ events, ...value }) => ({
        id: uuid(),
        ...toTexts(value),
        event: events as string[],
      })),
      domain: byDomain((value) => dashboard.domain.webhookEndpoints.create(ada.accountId, value as never, by)),
    },
    list: `${v1}/webhook-endpoints`,
    remove: ({ id }) => `${v1}/webhook-endpoints/${id}`,
  },
  {
    api: 'execution',
    schema: 'CreateNotificationRuleRequest',
    valid: rule,
    except: ['channel'],
    doors: {
      api: byApi('execution', 'POST', () => `${v1}/notification-rules`),
      change: byChange(`${v1}/notification-rules`, rule),
      form: byForm('/settings/notifications/new', ({ events, ...value }) => ({
        ...{ id: uuid(), notStartedSeconds: '900', failurePercent: '50' },
        ...{ ...toTexts(value), event: events as string[] },
      })),
      domain: byDomain((value) => dashboard.domain.notificationRules.create(ada.accountId, value as never, by)),
    },
    list: `${v1}/notification-rules`,
    remove: ({ id }) => `${v1}/notification-rules/${id}`,
  },
  {
    api: 'execution',
    schema: 'CreateScheduleRequest',
    valid: schedule,
    except: ['variableData', 'browserContextId'],
    doors: {
      api: byApi('execution', 'POST', () => `${v1}/schedules`),
      change: byChange(`${v1}/schedules`, schedule),
      form: byForm('/schedules/new', (value) => ({
        id: uuid(),
        ...toTexts(value),
        variables: JSON.stringify(variables),
      })),
      domain: byDomain((value) => {
        const { variableData: _, ...given } = value as typeof schedule
        return dashboard.domain.schedules.create(ada.accountId, { ...given, variables: { ...variables } }, by)
      }),
    },
    list: `${v1}/schedules`,
    remove: ({ id }) => `${v1}/schedules/${id}`,
  },
  {
    api: 'browser-context',
    schema: 'CreateBrowserContextRequest',
    valid: {},
    doors: {
      api: byApi('browser-context', 'POST', () => '/alpha/browser-contexts'),
      form: byForm('/browser-contexts/new', toTexts),
      domain: byDomain(({ name }) => dashboard.domain.browserContexts.create(ada.accountId, name as string, by)),
    },
    list: '/alpha/browser-contexts',
    remove: ({ id }) => `/alpha/browser-contexts/${id}`,
  },
  {
    api: 'execution',
    schema: 'PutSecretRequest',
    valid: {},
    doors: {
      api: byApi('execution', 'PUT', () => `${v1}/secrets/TOKEN`),
      form: byForm('/settings/secrets', ({ value }) => ({
        kind: 'secret',
        secretName: 'TOKEN',
        secretValue: toText(value),
      })),
      domain: byDomain(({ value }) => dashboard.domain.accountValues.put(ada.accountId, 'secret', 'TOKEN', value, by)),
    },
    list: `${v1}/secrets`,
  },
  {
    api: 'execution',
    schema: 'Setting',
    valid: {},
    except: ['version', 'updatedAt', 'updatedBy', 'workflowIds', 'value'],
    doors: {
      api: byApi(
        'execution',
        'PUT',
        ({ name }) => `${v1}/settings/${encode(name)}`,
        () => ({ value: 1 }),
      ),
      form: byForm('/settings/secrets', ({ name }) => ({
        kind: 'setting',
        settingName: toText(name),
        settingValue: '1',
      })),
      domain: byDomain(({ name }) => dashboard.domain.accountValues.put(ada.accountId, 'setting', toText(name), 1, by)),
    },
    list: `${v1}/settings`,
    remove: ({ name }) => `${v1}/settings/${name}`,
  },
  {
    api: 'execution',
    schema: 'BatchEntry',
    valid: { workflowId: 'greet', variableData: variables },
    except: ['variableData', 'browserContextId'],
    doors: {
      api: byApi(
        'execution',
        'POST',
        () => `${v1}/queue-remote-batch`,
        (value) => ({ runs: [value] }),
      ),
      form: byForm('/workflows/greet?as=json', ({ workflowId: _, ...value }) => ({
        ...{ ...toTexts(value), variables: JSON.stringify(variables), key: uuid(), browserContextId: '' },
      })),
      domain: byDomain(({ variableData: _, ...value }) => {
        const queuer = { accountId: ada.accountId, apiKeyId: null, userId: ada.id }
        return dashboard.domain.runs.queue(queuer, { ...value, variables: { ...variables } } as never)
      }),
    },
    list: `${v1}/runs`,
  },
]

test.each(refusedSettings)('the setting %s is refused by the API and the dashboard alike', async (text, detail) => {
  const headers = { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json' }
  const request = { method: 'PUT', headers, body: `{"value":${text}}` }
  const { errors } = (await (await fetch(`${dashboard.executionUrl}${v1}/settings/LIMIT`, request)).json()) as Value
  expect(errors).toMatchObject([{ detail }])
  const form = { kind: 'setting', settingName: 'LIMIT', settingValue: text }
  const page = await ada.visitor.post('/settings/secrets', form)
  expect([page.status, fieldError(page, 'settingValue')]).toEqual([400, expect.stringContaining(detail)])
  expect((await call('execution', 'GET', `${v1}/settings`)).body.data).toEqual([])
})

test('a bulk action of the dashboard has filters that the API returns', async () => {
  const start = (workflow: string) =>
    ada.visitor.post(`/runs/bulk-cancel?${new URLSearchParams({ workflow })}`, { id: uuid() })
  for (const workflow of ['a b', 'ü', 'x'.repeat(129), '\0'])
    expect([400, 404]).toContain((await start(workflow)).status)
  const { headers } = await start('greet')
  const id = String(headers.location).split('/').at(-1)
  expect(await call('execution', 'GET', `${v1}/bulk-actions/${id}`)).toMatchObject({ status: 200 })
})

test('what the definition of a workflow allows, a worker registers and the API returns', async () => {
  const document = documents.execution as Document
  const schema = { $ref: '#/components/schemas/WorkerWorkflow' }
  const { properties } = resolve<{ properties: Record<string, Schema> }>(document, schema)
  const valid: Value = { version: '1.0.0', variables: { type: 'object' }, output: {}, settings: {}, waits: {} }
  const isDefinition = (value: Value) => {
    try {
      return parseWorkflow('doors.ts', { title: 'Doors', run: () => undefined, ...value }).id !== 'count-words'
    } catch (error) {
      expect(error).toBeInstanceOf(WorkflowError)
      return false
    }
  }
  for (const [member, property] of Object.entries(properties)) {
    const edges = [...(member in valid ? [valid[member]] : []), ...edgesOf(document, property)]
    const workflows = edges.map((edge) => ({ id: uuid(), ...valid, [member]: edge })).filter(isDefinition)
    expect([member, workflows.length]).not.toEqual([member, 0])
    const worker = { name: 'doors', language: 'test', capacity: 1, browser: false, workflows }
    const { status, body } = await call('execution', 'PUT', `${v1}/workers/${uuid()}`, worker)
    expect([member, status < 300 ? [] : body]).toEqual([member, []])
    expect(await call('execution', 'GET', `${v1}/workflows`)).toMatchObject({ status: 200 })
  }
})

function encode(name: unknown): string {
  return encodeURIComponent(toText(name).toWellFormed()) || '%20'
}

for (const { api, schema, valid, except = [], doors, list, remove } of subjects) {
  const document = documents[api] as Document
  const { properties } = resolve<{ properties: Record<string, Schema> }>(document, {
    $ref: `#/components/schemas/${schema}`,
  })
  const members = Object.keys(properties).filter((name) => !except.includes(name))
  test.each(members)(`${schema}: %s is refused by a door, or returned by the API`, async (member) => {
    const within = member in valid ? [valid[member]] : []
    let stored = 0
    for (const [door, store] of Object.entries(doors)) {
      for (const edge of [...within, ...edgesOf(document, properties[member] as Schema)]) {
        const isStored = await store({ ...valid, [member]: edge })
        if (!isStored) continue
        stored += 1
        const { status, body } = await call(api, 'GET', typeof list === 'string' ? list : list())
        expect([door, JSON.stringify(edge).slice(0, 60), status]).toEqual([door, expect.anything(), 200])
        for (const each of remove ? body.data : [])
          expect((await call(api, 'DELETE', remove?.(each) ?? '')).status).toBe(204)
      }
    }
    // Some of the values are within the limits.
    expect(stored).toBeGreaterThan(0)
    expect(dashboard.log.filter(({ level }) => Number(level) >= 50)).toEqual([])
  })
}
