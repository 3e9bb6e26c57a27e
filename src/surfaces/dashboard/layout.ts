/** The document around every page: head, navigation and the signed-in user. */
import { assetPath } from './assets.ts'
import { attribute, type Html, heading, html, nothing, type Tone } from './html.ts'
import type { Page, PageRequest, Tab } from './page-handler.ts'
import { may } from './page-roles.ts'

/** The path of each tab is its name, except for the overview. Icons are SVG paths. */
export const tabs: [tab: Tab, title: string, icon: string][] = [
  ['overview', 'Overview', 'M3 12h4l3-8 4 16 3-8h4'],
  ['runs', 'Runs', 'M7 4v16l13-8z'],
  ['waits', 'Waiting', 'M7 4h10M7 20h10M8 4c0 5 8 6 8 8s-8 3-8 8M16 4c0 5-8 6-8 8s8 3 8 8'],
  ['workflows', 'Workflows', 'M4 5h6v6H4zM14 13h6v6h-6zM10 8h4a3 3 0 0 1 3 3v2'],
  ['browser-contexts', 'Browser Contexts', 'M4 5h16v14H4zM4 10h16M7 7.5h.01M10 7.5h.01'],
  ['schedules', 'Schedules', 'M12 4a8 8 0 1 0 0 16 8 8 0 0 0 0-16zM12 8v4l3 2'],
  ['webhooks', 'Webhooks', 'M3 12h11M10 8l4 4-4 4M18 5v14M21 5v14'],
  ['api-keys', 'API Keys', 'M15 9a4 4 0 1 0-3.5 4L13 14.5h2v2h2v2h3v-3l-5.2-5.2'],
  ['settings', 'Settings', 'M4 7h10m4 0h2M4 17h2m4 0h10M16 5v4M8 15v4'],
]

const searchIcon = 'M10.5 4a6.5 6.5 0 1 0 0 13 6.5 6.5 0 0 0 0-13zM15.5 15.5 20 20'
const themeIcon = 'M12 3a9 9 0 1 0 0 18 9 9 0 0 0 0-18zM12 3v18M12 8h7M12 13h8.9M12 18h6'
const docsIcon = 'M5 4h6a3 3 0 0 1 1 2 3 3 0 0 1 1-2h6v14h-6l-1 2-1-2H5zM12 6v14'

export function tabPath(name: Tab): string {
  return name === 'overview' ? '/' : `/${name}`
}

function icon(path: string): Html {
  return html`<svg class="icon" viewBox="0 0 24 24" aria-hidden="true"><path d="${path}" /></svg>`
}

function currentPage(isCurrent: boolean): Html | '' {
  return isCurrent ? html`aria-current="page"` : nothing
}

export function renderPage(request: PageRequest, { title, icon: tone, tab, body }: Page): Html {
  const links = tabs.map(([name, label, path]) => {
    return html`<li><a href="${tabPath(name)}" ${currentPage(name === tab)}>${icon(path)}${label}</a></li>`
  })
  const { user, account, environments } = request
  const hasSeveral = environments.length > 1
  return renderDocument(
    hasSeveral ? `${title} · ${account.environment}` : title,
    html`<div class="layout">
      <header class="sidebar">
        <a class="brand" href="/">${logo()}<span>execution-service</span></a>
        <div class="tools">
          <a class="go-to" href="/go-to" data-command-menu ${currentPage(tab === 'go-to')}>${icon(searchIcon)}<span>Go to…</span><kbd hidden>Ctrl K</kbd></a>
          <button type="button" class="theme" aria-label="Dark colours" aria-pressed="false" hidden>${icon(themeIcon)}</button>
        </div>${hasSeveral ? renderSwitch(request, tab) : nothing}
        <nav class="tabs" aria-label="Tabs"><ul>${links}<li><a href="/docs/">${icon(docsIcon)}Docs</a></li></ul></nav>
        <div class="user">
          <a href="/profile" ${currentPage(tab === 'profile')}>
            <strong>${user.name}</strong>
            <span>${account.name}</span>
          </a>
          <form method="post" action="/sign-out"><button class="quiet">Sign out</button></form>
        </div>
      </header>
      <main id="main">${body}</main>
    </div>`,
    tone,
    hasSeveral ? html` data-environment="${account.id}"` : nothing,
  )
}

/** Leads to the same tab of another environment: what this page shows may not exist there. */
function renderSwitch({ environments, account }: PageRequest, tab: Tab): Html {
  const options = environments.map(
    ({ id, environment }) =>
      html`<option value="${id}" ${attribute('selected', id === account.id)}>${environment}</option>`,
  )
  return html`
        <form method="post" action="/environment" class="environment">
          <input type="hidden" name="next" value="${tab === 'go-to' ? '/' : tabPath(tab)}" />
          <label class="unseen" for="environment">Environment</label>
          <select id="environment" name="environmentId" autocomplete="off">${options}</select>
          <button class="secondary">Switch</button>
        </form>`
}

/** A page without navigation: for users who are not signed in, and for errors. */
export function renderPlainPage(title: string, body: Html): Html {
  return renderDocument(
    title,
    html`<main id="main" class="plain">
      <p class="brand">${logo()}<span>execution-service</span></p>
      ${body}
    </main>`,
  )
}

function logo(): Html {
  return html`<img src="${assetPath('icon.svg')}" alt="" width="24" height="24" />`
}

function renderDocument(title: string, body: Html, tone?: Tone, bodyAttributes: Html | '' = nothing): Html {
  return html`<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8" />
    <meta name="viewport" content="width=device-width, initial-scale=1" />
    <meta name="color-scheme" content="light dark" />
    <title>${title} · execution-service</title>
    <link rel="icon" href="${assetPath(tone ? `icon-${tone}.svg` : 'icon.svg')}" type="image/svg+xml" />
    <link rel="stylesheet" href="${assetPath('pico.css')}" />
    <link rel="stylesheet" href="${assetPath('dashboard.css')}" />
    <script src="${assetPath('theme.js')}"></script>
    <script type="module" src="${assetPath('dashboard.js')}"></script>
  </head>
  <body${bodyAttributes}>
    <a class="skip" href="#main">Skip to content</a>
    ${body}
  </body>
</html>`
}

const settingsTabs = [
  { path: '/settings', title: 'General' },
  { path: '/settings/members', title: 'Members' },
  { path: '/settings/environments', title: 'Environments' },
  { path: '/settings/secrets', title: 'Secrets' },
  { path: '/settings/notifications', title: 'Notifications' },
  { path: '/settings/workers', title: 'Workers' },
  { path: '/settings/usage', title: 'Usage' },
  { path: '/settings/audit-log', title: 'Audit log' },
] as const

/** A page below Settings, with their common navigation. */
export function settingsPage({ user, environments }: PageRequest, path: string, content: Html, status = 200): Page {
  const visible = settingsTabs.filter(
    (tab) => may(user, `GET ${tab.path}`) && (tab.title !== 'Environments' || environments.length > 1),
  )
  const links = visible.map(
    (tab) => html`<li><a href="${tab.path}" ${currentPage(tab.path === path)}>${tab.title}</a></li>`,
  )
  const title = `${settingsTabs.find((tab) => tab.path === path)?.title} · Settings`
  const body = html`${heading('Settings')} <nav class="subtabs" aria-label="Settings"><ul>${links}</ul></nav>${content}`
  return { title, tab: 'settings', body, status }
}
