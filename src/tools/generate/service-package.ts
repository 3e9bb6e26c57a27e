/**
 * `npm run build:package` builds the published package `execution-service` in dist/execution-service: the service as
 * JavaScript, the types and test kit for authors, and the docs, with the folders of the repository. Packs it as well.
 */
import { execFile } from 'node:child_process'
import { cp, mkdir, readFile, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { gunzipSync } from 'node:zlib'
import { compilePackage, root } from '../../commands/project/compile-package.ts'
import { projectPackagesFile } from '../../commands/project/lock-file.ts'
import { readManifest } from '../../commands/project/manifest.ts'
import { moduleExports, packPackage, workflowModules } from '../../commands/project/workflow-package.ts'
import { publishedResponseChecks } from '../../contract/response-checks.ts'
import { documentNames } from '../../openapi/document.ts'
import { readContract } from '../../openapi/served-documents.ts'
import { readOperations } from '../../openapi/served-operations.ts'
import { buildReferenceFile } from '../../surfaces/docs/reference.ts'
import { bundlePackages } from './bundled-packages.ts'

/** Modules that start as processes or threads, so that no other module imports them. */
export const entries = [
  'src/commands/launcher.ts',
  'src/main.ts',
  'src/simulator/simulator.ts',
  'src/check/check-consumer.ts',
  'src/domain/deployments/compare-thread.ts',
  'src/domain/workflows/schema-thread.ts',
  'src/simulator/world-thread.ts',
  'src/worker/executors/executor.ts',
  'src/worker/browser/host-process.ts',
  'src/worker/browser/remote-browser.ts',
  'src/worker/browser/unpack-chromium.ts',
  'src/domain/deployments/build-process.ts',
  'src/surfaces/docs/site-thread.ts',
]

/** Exported in addition to the modules of authors. */
const simulatorModule = 'src/simulator/simulator'
const checkModule = 'src/check/check-consumer'

/** Files that are not modules. */
export const copied = [
  'LICENSE',
  'CHANGELOG.md',
  'deploy',
  'docs/guides',
  'docs/samples',
  'examples/workflows',
  'generated/example-workflows.json',
  'generated/check-situations.md',
  'generated/scenarios.schema.json',
  'generated/execution.v1/document.json',
  'generated/execution.v1/value-checks.cjs',
  'generated/browser-context.alpha/document.json',
  'generated/browser-context.alpha/value-checks.cjs',
  'src/commands/project/template',
  'src/surfaces',
]

/** For the mock and the browser, which an installation has only when it uses them. */
const optionalPeers = ['@sparticuz/chromium', '@stoplight/prism-cli']

/** What projects of authors get at the same versions. */
const ofProjects = ['@types/node', 'typescript']

/**
 * @param onStep called with what is done next, since all of it takes a minute.
 * @throws {Error} with the compiler's diagnostics.
 */
export async function buildServicePackage(directory: string, onStep: (step: string) => void = () => {}): Promise<void> {
  onStep('Compiling the modules')
  const authors = workflowModules()
  const compilerOptions = { ...authors.compilerOptions, resolveJsonModule: true, declaration: false }
  const simulator = {
    entries: [`${simulatorModule}-api.ts`, `${checkModule}-api.ts`],
    compilerOptions: { ...compilerOptions, declaration: true, emitDeclarationOnly: true },
    prune: true,
  }
  await compilePackage([{ entries, compilerOptions, prune: true }, simulator, authors], directory)
  onStep('Copying the files')
  for (const path of copied) {
    await cp(join(root, path), join(directory, path), { recursive: true, filter: isCopied })
  }
  await cp(join(root, 'docs'), join(directory, 'docs'), {
    recursive: true,
    filter: (path) => path === join(root, 'docs') || /^docs\/[^/]+\.md$/.test(relative(root, path)),
  })
  await cp(join(root, 'src/worker/testing/README.md'), join(directory, 'TESTING.md'))
  await cp(join(root, 'docs/package.md'), join(directory, 'README.md'))
  onStep('Rendering the reference of the APIs')
  const reference = await buildReferenceFile()
  await writeFile(join(directory, 'docs/reference.json.gz'), reference)
  await writeFile(join(directory, 'THIRD-PARTY-NOTICES.md'), await thirdPartyNotices(reference))
  for (const name of documentNames) {
    const { document } = readContract(name)
    const checks = publishedResponseChecks(document, readOperations(document))
    await writeFile(join(directory, `generated/${name}/response-checks.cjs`), checks)
  }
  await writeFile(join(directory, projectPackagesFile), JSON.stringify(await projectPackages()))
  onStep('Bundling the packages')
  const { dependencies, ...published } = await manifest()
  const bundleDependencies = await bundlePackages(
    directory,
    [...entries, ...authors.entries],
    Object.keys(dependencies),
  )
  const text = JSON.stringify({ ...published, dependencies, bundleDependencies }, undefined, 2)
  await writeFile(join(directory, 'package.json'), `${text}\n`)
}

/** Modules of the service are compiled; those of authors stay as they are. */
function isCopied(path: string): boolean {
  return !/^src\/surfaces\/.*\.ts$/.test(relative(root, path))
}

/** Of Redoc in the reference. All other packages, bundled or not, have their own licences in their directories. */
async function thirdPartyNotices(reference: Buffer): Promise<string> {
  const { redoc }: { redoc: string } = JSON.parse(String(gunzipSync(reference)))
  const comments = [...redoc.matchAll(/\/\*[*!](.*?)\*\//gs)].map(([, text = '']) =>
    text.replaceAll(/^[ *]+/gm, '').trim(),
  )
  const notices = new Set(comments.filter((text) => /@licen[sc]e|copyright/i.test(text)))
  const licence = await readFile(
    join(dirname(fileURLToPath(import.meta.resolve('@redocly/cli/package.json'))), 'LICENSE'),
    'utf8',
  )
  return [
    '# Third-party notices',
    'The file `docs/reference.json.gz` contains Redoc, whose licence is:',
    quote(licence),
    'Redoc contains styled-components, Copyright (c) 2016-present Glen Maddern and Maximilian Stoiber, and the libraries',
    'below, which state their licences. The text of the MIT License is the same as that above.',
    ...[...notices].map(quote),
    '',
  ].join('\n\n')
}

function quote(text: string): string {
  return `\`\`\`text\n${text.trim()}\n\`\`\``
}

/** The entries of the packages of projects in the lock file of the repository, and of the packages that they need. */
async function projectPackages(): Promise<object> {
  const { packages } = JSON.parse(await readFile(join(root, 'package-lock.json'), 'utf8'))
  const { optionalDependencies = {} } = await readManifest()
  const registry = await publicRegistry()
  const found: Record<string, object> = {}
  const visit = (name: string) => {
    const path = `node_modules/${name}`
    if (path in found) return
    const { version, dev, ...entry } = packages[path]
    // The address at the public registry. npm replaces its host by that of the registry in use.
    const file = `${name.replace(/^.*\//, '')}-${version}.tgz`
    found[path] = { version, resolved: `${registry}${name}/-/${file}`, ...entry }
    for (const each of Object.keys(entry.dependencies ?? {})) visit(each)
  }
  for (const name of [...ofProjects, ...Object.keys(optionalDependencies)]) visit(name)
  return found
}

/** The registry of npm without any configuration, with a slash at the end. */
async function publicRegistry(): Promise<string> {
  const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !/^npm_config_/i.test(name)))
  const configured = ['--userconfig', 'none-of-user', '--globalconfig', 'none-of-all']
  const { stdout } = await promisify(execFile)('npm', ['config', 'get', 'registry', ...configured], {
    env,
    cwd: tmpdir(),
  })
  return stdout.trim()
}

async function manifest() {
  const { name, version, description, license, engines, dependencies, devDependencies, optionalDependencies } =
    await readManifest()
  const versionsOf = (names: readonly string[]) =>
    Object.fromEntries(names.map((each) => [each, devDependencies?.[each]]))
  return {
    name,
    version,
    description,
    keywords: ['workflows', 'queue', 'durable execution', 'openapi', 'scheduler', 'webhooks'],
    license,
    type: 'module',
    bin: { [name]: 'src/commands/launcher.js' },
    exports: {
      ...moduleExports,
      './check': { types: `./${checkModule}-api.d.ts`, default: `./${checkModule}.js` },
      './simulator': { types: `./${simulatorModule}-api.d.ts`, default: `./${simulatorModule}.js` },
    },
    engines,
    dependencies,
    peerDependencies: versionsOf(optionalPeers),
    peerDependenciesMeta: Object.fromEntries(optionalPeers.map((each) => [each, { optional: true }])),
    projectDependencies: { ...versionsOf(ofProjects), ...optionalDependencies },
    // Provenance needs the `repository` from which a CI publishes: docs/development.md says what to set.
    publishConfig: { access: 'public' },
  }
}

if (import.meta.main) {
  const dist = fileURLToPath(new URL('../../../dist', import.meta.url))
  const directory = join(dist, 'execution-service')
  await mkdir(dist, { recursive: true })
  const onStep = (step: string) => void process.stdout.write(`${step} …\n`)
  await buildServicePackage(directory, onStep)
  onStep('Packing the package')
  process.stdout.write(`wrote: dist/execution-service/ and dist/${await packPackage(directory, dist)}\n`)
}
