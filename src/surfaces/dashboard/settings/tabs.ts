/** What the pages below Settings have in common. */
import { heading } from '../elements.ts'
import { type Html, html, nothing } from '../html.ts'
import type { Page, Visit } from '../visit.ts'

const tabs = [
  { path: '/settings', title: 'Account', ofOwners: false },
  { path: '/settings/members', title: 'Members', ofOwners: false },
  { path: '/settings/audit-log', title: 'Audit log', ofOwners: true },
]

export function settingsPage({ user }: Visit, path: string, content: Html, status = 200): Page {
  const shown = tabs.filter((tab) => !tab.ofOwners || user.role === 'owner')
  const links = shown.map(
    (tab) =>
      html`<li><a href="${tab.path}" ${tab.path === path ? html`aria-current="page"` : nothing}>${tab.title}</a></li>`,
  )
  const title = tabs.find((tab) => tab.path === path)?.title ?? 'Settings'
  const body = html`${heading('Settings')} <nav class="subtabs" aria-label="Settings"><ul>${links}</ul></nav>${content}`
  return { title, tab: 'settings', body, status }
}
