/** The units in deploy/systemd: their commands and settings exist, and systemd accepts them where it is installed. */
import { spawnSync } from 'node:child_process'
import { globSync, readFileSync, writeFileSync } from 'node:fs'
import { basename, join, resolve } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { readConfig, settings } from '../../src/config/config.ts'
import { readEnvironmentFile } from '../../src/config/environment-file.ts'
import { removeDirectory, temporaryDirectory } from '../support/service.ts'

const units = globSync('deploy/systemd/*.service').sort()

/** The values of each option of the section [Service]; an option may stand several times. */
function readOptions(file: string): Map<string, string[]> {
  const options = new Map<string, string[]>()
  const [, section = ''] = /^\[Service\]\n(.*?)^\[/ms.exec(readFileSync(file, 'utf8')) ?? []
  for (const line of section.split('\n').filter((each) => each !== '' && !each.startsWith('#'))) {
    const [, name = line, value = ''] = /^([A-Za-z]+)=(.*)$/.exec(line) ?? []
    options.set(name, [...(options.get(name) ?? []), value])
  }
  return options
}

test('there is a unit for the service and a template for workers', () => {
  expect(units.map((file) => basename(file))).toEqual([
    'execution-service-worker@.service',
    'execution-service.service',
  ])
})

test.for(units)('%s starts a command that exists, with settings that exist and time to stop', (file) => {
  const options = readOptions(file)
  const value = (name: string) => options.get(name)?.join(' ') ?? ''
  const [program, command] = value('ExecStart').split(' ')
  expect(program).toBe('/opt/execution-service/bin/execution-service')
  expect(readFileSync('src/main.ts', 'utf8')).toContain(`.command('${command}')`)
  const environment = Object.fromEntries(
    value('Environment')
      .split(' ')
      .map((pair) => pair.split('=')),
  )
  const others = ['NODE_ENV', 'NODE_COMPILE_CACHE', 'XDG_CACHE_HOME']
  expect(Object.keys(environment).filter((name) => !(name in settings) && !others.includes(name))).toEqual([])
  const config = readConfig(environment)
  expect(config.DATA_DIR).toBe(`/var/lib/${value('StateDirectory')}`)
  expect(environment.XDG_CACHE_HOME).toBe(`/var/cache/${value('CacheDirectory')}`)
  const seconds = config.DRAIN_SECONDS + config.SHUTDOWN_SECONDS + config.ABORT_GRACE_SECONDS
  expect(Number(value('TimeoutStopSec'))).toBeGreaterThan(seconds)
  expect(value('KillMode')).toBe('mixed')
  expect(value('User')).toBe('execution-service')
})

test('both units have the same options apart from the command', () => {
  const [worker, service] = units.map((file) => Object.fromEntries(readOptions(file)))
  expect({ ...worker, ExecStart: [] }).toEqual({ ...service, ExecStart: [] })
})

test('the guide installs the program and the units where they expect it', () => {
  const guide = readFileSync('docs/guides/running-in-production.md', 'utf8')
  expect(guide).toContain('npm install --global --prefix /opt/execution-service ')
  const directory = '/opt/execution-service/lib/node_modules/execution-service/deploy/systemd'
  expect(guide).toContain(`cp ${directory}/*.service /etc/systemd/system/`)
  expect(guide).toContain('systemctl enable --now execution-service-worker@1')
})

test('commands take the settings of the environment file, which the guide passes to them', () => {
  const guide = readFileSync('docs/guides/running-in-production.md', 'utf8')
  const [, file = ''] = /execution-service --env-file (\S+) "\$@"/.exec(guide) ?? []
  for (const unit of units) expect(readOptions(unit).get('EnvironmentFile')).toEqual([`-${file}`])
  const directory = temporaryDirectory()
  onTestFinished(() => removeDirectory(directory))
  const path = join(directory, 'environment')
  const lines = [
    '# A comment, and settings as systemd reads them.',
    '; Another one.',
    'DATABASE_URL=postgres://user:p%23@host/db?sslmode=require&a=b#c ',
    '  HOST = "10.0.0.5"',
    'OIDC_NAME=\'it "is" $HOME\'',
    'OIDC_ROLES="{\\"*\\":\\"viewer\\"}"',
    'LOG_LEVEL=info',
    'LOG_LEVEL=warn',
    'DATA_DIR=/from/the/file',
    'EMPTY=',
  ]
  writeFileSync(path, lines.join('\n'))
  expect(readEnvironmentFile(path)).toEqual({
    DATABASE_URL: 'postgres://user:p%23@host/db?sslmode=require&a=b#c',
    HOST: '10.0.0.5',
    OIDC_NAME: 'it "is" $HOME',
    OIDC_ROLES: '{"*":"viewer"}',
    LOG_LEVEL: 'warn',
    DATA_DIR: '/from/the/file',
    EMPTY: '',
  })
  writeFileSync(path, 'DATA_DIR=/from/the/file')
  const command = [resolve('src/main.ts'), '--env-file', path, 'keys', 'list']
  const { stderr } = spawnSync(process.execPath, command, { encoding: 'utf8', env: { DATA_DIR: '/from/outside' } })
  expect(stderr).toMatch(/^There is no store in \/from\/the\/file: /)
  for (const broken of ['NO VALUE', 'A="open', "A='b'c'"]) {
    writeFileSync(path, `A=1\n${broken}`)
    expect(() => readEnvironmentFile(path), broken).toThrow(/^Line 2 of \S+ is invalid: write NAME=VALUE/)
  }
})

const analyze = (...args: string[]) => spawnSync('systemd-analyze', args, { encoding: 'utf8' })

test.skipIf(analyze('--version').status !== 0).for(units)(
  '%s has options that systemd knows, and an exposure of at most 3',
  (file) => {
    const directory = temporaryDirectory()
    onTestFinished(() => removeDirectory(directory))
    const copy = join(directory, basename(file).replace('@', '@1'))
    // The program is not installed here, and may not be missing.
    writeFileSync(copy, readFileSync(file, 'utf8').replace('/opt/execution-service/bin/execution-service', '/bin/true'))
    const verified = analyze('verify', '--man=no', '--recursive-errors=no', copy)
    expect(verified.stderr.split('\n').filter((line) => line.includes(basename(copy)))).toEqual([])
    expect(verified.status).toBe(0)
    const security = analyze('security', '--offline=true', '--threshold=30', '--no-pager', copy)
    expect(security.status, security.stdout).toBe(0)
  },
)
