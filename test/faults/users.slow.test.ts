/** Links for users: the first one, those of further accounts, and sign-in links. */
import { describe, expect, onTestFinished, test } from 'vitest'
import { password, Visitor } from '../support/dashboard.ts'
import { inputValue, pageText } from '../support/html.ts'
import { type Installation, newInstallation } from '../support/installation.ts'

async function install(changes: Record<string, string> = {}): Promise<Installation> {
  const installation = await newInstallation(changes)
  onTestFinished(installation.remove)
  return installation
}

/** Runs a command, and parses its JSON output. */
async function printed({ runCommand: command }: Installation, ...args: string[]) {
  const { code, stdout, stderr } = await command(...args, '--json')
  expect([code, stderr]).toEqual([0, ''])
  return JSON.parse(stdout)
}

/** The links in the text. */
function linksIn(text: string): string[] {
  return [...text.matchAll(/https?:\/\/\S+(\/links\/[\w-]{32})(?=\s)/g)].map(([, path = '']) => path)
}

const ada = { name: 'Ada', email: 'ada@example.com', password }

describe('npm start', () => {
  test('prints a link until it was used, and never logs it', async () => {
    const installation = await install()
    const first = await installation.start('service ready')
    expect(first.output()).toContain('Open this link to set up your sign-in. It works once, within a day:')
    expect(linksIn(first.output())).toHaveLength(1)
    expect(JSON.stringify(first.log)).not.toContain('/links/')
    await first.stop()
    const second = await installation.start('service ready')
    const [old = '', latest = ''] = [...linksIn(first.output()), ...linksIn(second.output())]
    const visitor = new Visitor(second.dashboardUrl)
    expect((await visitor.get(old)).status).toBe(410)
    expect((await visitor.post(latest, ada)).status).toBe(303)
    expect(inputValue(await visitor.get('/profile'), 'email')).toBe(ada.email)
    await second.stop()
    const third = await installation.start('service ready')
    expect(linksIn(third.output())).toEqual([])
    expect(third.output()).toContain(`Dashboard            ${third.dashboardUrl}`)
    await third.stop()
  })
})

describe('accounts create', () => {
  test('prints a link that makes its user the owner of the account', async () => {
    const installation = await install({ DASHBOARD_URL: 'https://runs.example.com' })
    const { code, stdout } = await installation.runCommand('accounts', 'create', '--name', 'Second')
    expect([code, linksIn(stdout).length]).toEqual([0, 1])
    expect(stdout).toContain('  https://runs.example.com/links/')
    const third = await printed(installation, 'accounts', 'create', '--name', 'Third')
    expect(third).toMatchObject({
      name: 'Third',
      welcomeUrl: expect.stringMatching(/^https:\/\/runs\.example\.com\/links\//),
    })
    const users = await printed(installation, 'users', 'list', '--account', third.id)
    expect(users).toMatchObject([{ name: 'Admin', email: null, role: 'admin', lastSignedInAt: null }])
  })
})

describe('users', () => {
  test('are listed by account, without secrets', async () => {
    const installation = await install()
    const { id } = await printed(installation, 'accounts', 'create', '--name', 'Only')
    const other = await printed(installation, 'accounts', 'create', '--name', 'Other')
    const list = await installation.runCommand('users', 'list', '--account', id)
    expect(list.stdout).toMatch(
      /^id +name +email +role +secondFactor +lastSignedInAt\n[0-9a-f-]{36} +Admin +- +admin +false +-\n$/,
    )
    const withoutAccount = await installation.runCommand('users', 'list')
    expect(withoutAccount).toMatchObject({
      code: 1,
      stdout: '',
      stderr: expect.stringContaining('There are several accounts'),
    })
    const [user] = await printed(installation, 'users', 'list', '--account', other.id)
    expect(Object.keys(user)).toEqual(['id', 'name', 'email', 'role', 'secondFactor', 'lastSignedInAt'])
  })

  test('get a link that signs them in once, while the service runs', async () => {
    const installation = await install()
    const service = await installation.start('service ready')
    await new Visitor(service.dashboardUrl).post(linksIn(service.output())[0] ?? '', ada)
    const old = await installation.runCommand('users', 'sign-in-link')
    expect(old.stdout).toContain('This link signs in "Ada". It works once, within a day.')
    const { user, url } = await printed(installation, 'users', 'sign-in-link', '--email', ' ADA@example.com ')
    expect(user).toMatchObject({ name: 'Ada', email: ada.email, role: 'admin' })
    const visitor = new Visitor(service.dashboardUrl)
    expect((await visitor.post(linksIn(old.stdout)[0] ?? '')).status).toBe(410)
    expect((await visitor.post(new URL(url).pathname)).status).toBe(303)
    expect((await visitor.post('/profile/password', { password: 'another engine' })).status).toBe(303)
    expect((await visitor.post(new URL(url).pathname)).status).toBe(410)
    const entries = pageText(await visitor.get('/settings/audit-log'))
    expect(entries).toContain('command line created a sign-in link Ada')
    expect(await printed(installation, 'users', 'list')).toMatchObject([
      { id: user.id, lastSignedInAt: expect.any(String) },
    ])
  })

  test('that do not exist cause an error of one sentence', async () => {
    const installation = await install()
    const [first, second] = [
      await printed(installation, 'accounts', 'create', '--name', 'First'),
      await printed(installation, 'accounts', 'create', '--name', 'Second'),
    ]
    const [otherUser] = await printed(installation, 'users', 'list', '--account', second.id)
    for (const which of ['nobody@example.com', otherUser.id, '']) {
      const refused = await installation.runCommand('users', 'sign-in-link', '--account', first.id, '--email', which)
      const words = `This account has no user with the e-mail ${which}. \`users list\` shows its users.\n`
      expect(refused).toEqual({ code: 1, stdout: '', stderr: words })
    }
  })
})
