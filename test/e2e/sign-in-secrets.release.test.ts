/**
 * The password, the TOTP seed and the one-time codes of a sign-in, generated and answered, are in nothing that the service
 * stores, writes, sends or shows, whatever the workflow and the site do with them.
 */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { unzipSync } from 'fflate'
import { Secret } from 'otpauth'
import { expect, onTestFinished, test } from 'vitest'
import { createBrowserContextClient, type ExecutionClient, unwrap } from '../../src/client/index.ts'
import { startBrowser } from '../support/browser.ts'
import { findCanaries, readFiles } from '../support/canaries.ts'
import { signIn } from '../support/dashboard.ts'
import { linkPaths } from '../support/html.ts'
import { newInstallation, type ServiceProcess } from '../support/installation.ts'
import { startMailServer } from '../support/mail-server.ts'
import { removeDirectory, temporaryDirectory, until } from '../support/service.ts'
import { startWebhookReceiver } from '../support/webhook-receiver.ts'
import { callerOf, read } from './caller.ts'

const WORKFLOWS_DIR = fileURLToPath(new URL('betraying-workflows', import.meta.url))

/** A site whose fields have ordinary names and types, and which repeats what it is sent; with the codes that it got. */
async function startSite() {
  const codes: string[] = []
  const server = createServer(async (request, response) => {
    const sent = new URLSearchParams(await text(request))
    if (request.method === 'POST' && request.url === '/') {
      codes.push(sent.get('app') ?? '')
      return response.writeHead(303, { Location: `/said?${sent}` }).end()
    }
    const { searchParams } = new URL(request.url ?? '', 'http://site')
    const said = [...searchParams.values()].join(' ')
    response.setHeader('Content-Type', 'text/html')
    response.setHeader('Set-Cookie', `said=${encodeURIComponent(said)}`)
    if (request.url?.startsWith('/missing')) return response.writeHead(404).end(decodeURIComponent(request.url))
    // The last page has none, whose screenshot shows that other elements are covered.
    const digits = Array.from(
      { length: request.url === '/' ? 8 : 0 },
      (_, index) => `<input aria-label="Digit ${index}" maxlength="1">`,
    )
    response.end(`<!doctype html><title>Said ${said}</title><form method="post" action="/">
      <label>Word <input name="word"></label><label>App <input name="app"></label><label>Mail <input name="mail"></label>
      <fieldset>${digits.join('')}</fieldset><button>Sign in</button></form>
      <p>${said}</p><script>console.log(document.title); console.error(location.href)</script>`)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`, codes }
}

type Place = [name: string, content: Buffer | string]

/** The files of a run; of archives each one. Pictures are examined in another way. */
async function readFilesOf(client: ExecutionClient, runId: string, names: string[]): Promise<Place[]> {
  const places: Place[] = []
  for (const artifactName of names) {
    const params = { path: { runId, artifactName } }
    const { data } = await client.getRunArtifact({ params, parseAs: 'arrayBuffer' })
    const content = Buffer.from(data as ArrayBuffer)
    const files = artifactName.endsWith('.zip') ? Object.entries(unzipSync(content)) : [['', content] as const]
    for (const [file, bytes] of files) places.push([`${artifactName}/${file}`, Buffer.from(bytes)])
  }
  return places
}

const isPicture = ([name]: Place) => /\.(jpe?g|png)\/?$/.test(name)

/** The share of a picture's pixels that Playwright has covered with its color. */
async function coveredShare(jpeg: Buffer | string): Promise<number> {
  const browser = await startBrowser()
  onTestFinished(() => browser.close())
  const page = await browser.newPage({ onTestFinished } as Parameters<typeof browser.newPage>[0])
  return page.evaluate(async (base64) => {
    const image = await createImageBitmap(await (await fetch(`data:image/jpeg;base64,${base64}`)).blob())
    const canvas = new OffscreenCanvas(image.width, image.height)
    const context = canvas.getContext('2d')
    context?.drawImage(image, 0, 0)
    const { data = [] } = context?.getImageData(0, 0, image.width, image.height) ?? {}
    let covered = 0
    for (let at = 0; at < data.length; at += 4)
      if ((data[at] ?? 0) > 200 && (data[at + 1] ?? 255) < 60 && (data[at + 2] ?? 0) > 200) covered += 1
    return covered / (data.length / 4)
  }, Buffer.from(jpeg).toString('base64'))
}

/** Every page of the dashboard that a user reaches from these. */
async function readPages(
  service: ServiceProcess,
  settings: Record<string, string>,
  accountId: string,
  paths: string[],
): Promise<Place[]> {
  const { visitor } = await signIn({ ...service, settings }, { accountId })
  const read = new Map<string, string>()
  const first = await Promise.all(paths.map((path) => visitor.get(path)))
  expect(first.map(({ status }) => status)).toEqual(paths.map(() => 200))
  const all = new Set([...paths, ...first.flatMap((page) => linkPaths(page, /./))])
  for (const path of all) if (/^\/(?!docs)/.test(path)) read.set(path, (await visitor.get(path)).text)
  return [...read].map(([path, page]): Place => [`the page ${path}`, page])
}

test.for([{ succeeds: false }, { succeeds: true }])(
  'the secrets of a sign-in are nowhere (its site accepts it: $succeeds)',
  { timeout: 900_000 },
  async ({ succeeds }) => {
    const mail = await startMailServer({ onTestFinished })
    const receiver = await startWebhookReceiver({ onTestFinished } as Parameters<typeof startWebhookReceiver>[0])
    const settings = {
      ...{ WORKFLOWS_DIR, LOG_LEVEL: 'trace', WEBHOOK_PRIVATE_ADDRESSES: '127.0.0.1' },
      ...{ SMTP_URL: mail.url, SMTP_FROM: 'runs@service.example' },
    }
    const installation = await newInstallation(settings)
    onTestFinished(installation.remove)
    const service = await installation.start()
    const { account, client } = await callerOf(installation, service)
    const contexts = createBrowserContextClient({ apiKey: account.key, baseUrl: service.browserContextUrl })
    const events = ['browserContext.needsSignIn', 'run.failed', 'run.succeeded', 'run.waiting'] as const
    const endpoint = { url: receiver.url('/hooks'), events: [...events] }
    const { secret } = unwrap(await client.createWebhookEndpoint({ body: endpoint }))
    receiver.accept('/hooks', { secret })
    const rule = { name: 'Sign-ins', events: ['browserContext.needsSignIn' as const], recipients: ['a@team.example'] }
    unwrap(await client.createNotificationRule({ body: { ...rule, channel: 'email' } }))

    const site = await startSite()
    const password = `canary-${crypto.randomUUID()} "quoted" & <b>`
    const seed = new Secret({ size: 20 }).base32
    const answered = `canary-${crypto.randomUUID()} 'quoted'`
    const responses: string[] = []
    const params = { path: { browserContextId: '' } }
    params.path.browserContextId = unwrap(await contexts.createBrowserContext({ body: { name: 'Shop' } })).id
    const body = {
      workflowId: 'betray-sign-in',
      variableData: { url: site.url, password, succeeds },
      // Of eight digits, so that none is found by chance.
      totpSeed: `otpauth://totp/Shop:ada?secret=${seed}&digits=8&issuer=Shop`,
    }
    const wrongType = { variableData: { ...body.variableData, succeeds: password } }
    for (const invalid of [wrongType, { totpSeed: `${password}${seed}` }]) {
      const { error } = await contexts.setSignIn({ params, body: { ...body, ...invalid } as typeof body })
      expect(error?.status).toBe(400)
      responses.push(JSON.stringify(error))
    }
    responses.push(JSON.stringify(unwrap(await contexts.setSignIn({ params, body }))))
    const { runId } = unwrap(await contexts.signInNow({ params }))
    const run = { id: runId ?? '' }
    const attempts = succeeds ? 1 : 2
    for (let attempt = 1; attempt <= attempts; attempt += 1) {
      await until(`attempt ${attempt} asks for the code`, async () => {
        const { data } = await client.listRunWaits({ params: { path: { runId: run.id } } })
        responses.push(JSON.stringify(data))
        const isOpen = data?.data.some(({ name, status }) => name === 'code' && status === 'open')
        return isOpen && (await read(client, run)).attempts === attempt
      })
      const path = { runId: run.id, name: 'code' }
      responses.push(
        JSON.stringify(unwrap(await client.completeWait({ params: { path }, body: { value: { code: answered } } }))),
      )
      await until(`attempt ${attempt} has ended`, async () => site.codes.length === attempt)
    }
    const status = succeeds ? 'succeeded' : 'failed'
    const ended = await until(`the run has ${status}`, async () => {
      const now = await read(client, run)
      return now.status === status && now
    })
    const state = await until('the sign-in is over', async () => {
      const now = unwrap(await contexts.getSignIn({ params }))
      return now.status === (succeeds ? 'signedIn' : 'needsSignIn') && now
    })
    const event = succeeds ? 'run.succeeded' : 'browserContext.needsSignIn'
    await until('the webhook has arrived', async () =>
      receiver.received('/hooks').some((each) => each.event.type === event),
    )
    if (!succeeds) await until('the email has arrived', async () => mail.mails.length > 0)

    const names = [...ended.artifacts, ...(ended.evidence ?? [])].map(({ name }) => name)
    const evidence = [
      `attempt-${attempts}-browser.json`,
      `attempt-${attempts}-page-1.jpg`,
      `attempt-${attempts}-trace.zip`,
    ]
    expect(names).toEqual(expect.arrayContaining(evidence))
    const files = await readFilesOf(client, run.id, names)
    const log = await client.streamRunEvents({ params: { path: { runId: run.id } }, parseAs: 'text' })
    const directory = temporaryDirectory()
    onTestFinished(() => removeDirectory(directory))
    expect((await installation.runCommand('accounts', 'export', '--account', account.id, directory)).code).toBe(0)
    const pages = [
      `/runs/${run.id}`,
      `/browser-contexts/${params.path.browserContextId}`,
      '/settings/audit-log',
      '/',
      '/webhooks',
    ]
    const metrics = await (await fetch(`${service.managementUrl}/metrics`)).text()
    const places = async (): Promise<Place[]> => [
      ...files.filter((file) => !isPicture(file)),
      ...(await readPages(service, installation.settings, account.id, pages)),
      ...readFiles(directory).map(([name, content]): Place => [`export ${name}`, content]),
      ...(await installation.contents()),
      ...responses.map((each): Place => ['a response', each]),
      ['the run', JSON.stringify(ended)],
      ['the sign-in', JSON.stringify(state)],
      ['its events', String(log.data)],
      ['webhooks', JSON.stringify(receiver.received('/hooks'))],
      ['emails', JSON.stringify(mail.mails)],
      ['the metrics', metrics],
      ['the log', service.output()],
    ]
    const canaries = {
      password,
      seed,
      answered,
      ...Object.fromEntries(site.codes.map((each, index) => [`code ${index + 1}`, each])),
    }
    expect(site.codes).toEqual(site.codes.map(() => expect.stringMatching(/^[0-9]{8}$/)))
    expect(new Set(site.codes).size).toBe(attempts)
    const searched = await places()
    const found = Object.entries(canaries).flatMap(([name, value]) =>
      findCanaries(searched, [value]).map((place) => `${name}: ${place}`),
    )
    expect(found).toEqual([])
    // The search finds what is there: the mask where a secret was.
    const masked = findCanaries(searched, ['********'])
    const trace = `attempt-${attempts}-trace.zip/0-trace.trace`
    expect(masked).toEqual(
      expect.arrayContaining(['the run', 'its events', 'the sign-in', trace, `attempt-${attempts}-browser.json/`]),
    )
    // Neither are the digits that the workflow has entered one by one.
    const actions = String(files.find(([name]) => name === trace)?.[1])
    expect(actions).toContain('"method":"fill"')
    expect(actions).not.toMatch(/"(value|text|__playwright_value_)":"[0-9]"/)
    const picture = files.find(([name]) => name === `attempt-${attempts}-page-1.jpg/`)?.[1] ?? ''
    expect(await coveredShare(picture)).toBeGreaterThan(0.005)
    await service.stop()
    const stopped: Place[] = [...(await installation.contents()), ['the log', service.output()]]
    expect(findCanaries(stopped, Object.values(canaries))).toEqual([])
  },
)
