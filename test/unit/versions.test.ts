/** One version for the service, its clients, its chart, and the file names in the guides. */
import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import packageJson from '../../package.json' with { type: 'json' }

const { version, dependencies } = packageJson

test('the guide installs the browser of the version of Playwright that the service has', () => {
  const guide = readFileSync('docs/guides/your-own-project.md', 'utf8')
  expect(/npx playwright-core@(\S+) install/.exec(guide)?.[1]).toBe(dependencies['playwright-core'])
})

test.for([
  ['src/client/package.json', /"version": "(.+?)"/],
  ['clients/python/src/execution_service/_version.py', /__version__ = "(.+?)"/],
  ['deploy/helm/Chart.yaml', /^version: (\S+)$/m],
  ['deploy/helm/Chart.yaml', /^appVersion: (\S+)$/m],
  ['docs/guides/python.md', /execution_service-(\d\S+?)-py3/],
  ['docs/guides/client.md', /execution-service-client-(\d\S+?)\.tgz/],
  ['docs/guides/your-own-project.md', /dist\/execution-service-(\d\S+?)\.tgz/],
  ['README.md', /dist\/execution-service-(\d\S+?)\.tgz/],
  ['CHANGELOG.md', /^## (\d\S+)/m],
] as const)('%s names the version of package.json', ([file, pattern]) => {
  expect(pattern.exec(readFileSync(file, 'utf8'))?.[1]).toBe(version)
})
