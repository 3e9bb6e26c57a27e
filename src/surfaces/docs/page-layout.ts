/** The layout of every page: the top bar, the list of guides, the table of contents, and links to the next guide. */
import { html, raw } from 'hono/html'
import type { Contract, ContractTag } from './contracts.ts'
import type { Guide } from './guides.ts'
import type { Assets } from './site.ts'

type Html = ReturnType<typeof html>

export interface Layout {
  assets: Assets
  guides: readonly Guide[]
  contracts: readonly Contract[]
  /** Where signed-in users find the pages of their workflows; `undefined` without a service. */
  workflowsUrl: string | undefined
  /** `undefined` where the docs are read as files. */
  dashboardUrl?: string | undefined
}

interface Page {
  title: string
  summary: string
  styles: readonly string[]
  /** Name of the page, to mark its link in the bar; empty for the error page. */
  current: string
  head?: Html
  /** For a page whose visible headings begin at level 2. */
  heading?: string
  body: Html
  /** Prefix of every address; empty by default, so that pages work as files. */
  root?: string
}

const searchIcon = 'M10.5 4a6.5 6.5 0 1 0 0 13 6.5 6.5 0 0 0 0-13zM15.5 15.5 20 20'
const themeIcon = 'M12 3a9 9 0 1 0 0 18 9 9 0 0 0 0-18zM12 3v18M12 8h7M12 13h8.9M12 18h6'

function icon(path: string): Html {
  return html`<svg class="icon" viewBox="0 0 24 24" aria-hidden="true"><path d="${path}" /></svg>`
}

async function render({ assets, contracts, guides, workflowsUrl, dashboardUrl }: Layout, page: Page): Promise<string> {
  const { title, summary, styles, current, head = html``, heading, body, root = '' } = page
  const links = [
    { href: `${root}index.html`, title: 'Guides', isCurrent: guides.some(({ name }) => name === current) },
    ...contracts.map(({ page, title }) => ({ href: `${root}${page}.html`, title, isCurrent: page === current })),
    ...(workflowsUrl ? [{ href: workflowsUrl, title: 'Workflows', isCurrent: current === 'workflows' }] : []),
  ].map(
    ({ href, title, isCurrent }) =>
      html`<li><a href="${href}"${isCurrent ? html` aria-current="true"` : ''}>${title}</a></li>`,
  )
  return String(
    await html`<!doctype html>
<html lang="en" data-minisearch="${root}${assets.minisearch}" data-index="${root}${assets.index}"${current === 'workflows' ? html` data-workflows-index="${root}workflows.js"` : ''} data-root="${root}">
  <head>
    <meta charset="utf-8" />
    <meta name="viewport" content="width=device-width, initial-scale=1" />
    <meta name="color-scheme" content="light dark" />
    <meta name="description" content="${summary}" />
    <title>${title} · execution-service docs</title>
    <link rel="icon" href="${root}${assets.icon}" type="image/svg+xml" />
    ${styles.map((style) => html`<link rel="stylesheet" href="${root}${style}" />`)}
    <script src="${root}${assets.theme}"></script>
    <script defer src="${root}${assets.script}"></script>
    ${head}
  </head>
  <body>
    <a class="skip" href="#main">Skip to content</a>
    <header class="bar">
      <a class="brand" href="${root}index.html"><img src="${root}${assets.icon}" alt="" width="24" height="24" /><span>execution-service</span></a>
      <nav aria-label="Docs"><ul>${links}${dashboardUrl ? html`<li><a href="${dashboardUrl}/">Dashboard</a></li>` : ''}</ul></nav>
      ${heading ? html`<h1 class="unseen">${heading}</h1>` : ''}
      <button type="button" class="search-button" hidden>${icon(searchIcon)}<span>Search</span></button>
      <button type="button" class="theme-button" aria-label="Dark colours" aria-pressed="false" hidden>${icon(themeIcon)}</button>
    </header>
    ${body}
  </body>
</html>
`,
  )
}

export function guidePage(layout: Layout, guide: Guide): Promise<string> {
  const { assets, guides, contracts } = layout
  const { title, summary, name } = guide
  const index = guides.indexOf(guide)
  const [previous, next] = index < 0 ? [] : [guides[index - 1], guides[index + 1]]
  const versions = contracts.map(({ title, version }) => `${title} ${version}`)
  const body = html`<div class="columns">
      <div class="guides">${guideList(layout, guide)}</div>
      <main id="main">
        <article>${raw(guide.html)}</article>
        <nav class="pager" aria-label="Previous and next">
          ${previous ? html`<a rel="prev" href="${previous.name}.html"><span>Previous</span>${previous.title}</a>` : html`<span></span>`}
          ${next ? html`<a rel="next" href="${next.name}.html"><span>Next</span>${next.title}</a>` : ''}
        </nav>
        <footer>${versions.join(', ')}. This page as <a href="${name}.md">Markdown</a>; all pages for language models: <a href="llms.txt">llms.txt</a>.</footer>
      </main>
      <div class="contents">${tableOfContents(guide)}</div>
    </div>`
  return render(layout, { title, summary, styles: [assets.pico, assets.docs], current: name, body })
}

/** Rendered twice: as a sidebar, and collapsed for narrow windows. The style sheet shows one of them. */
function guideList({ guides, contracts, workflowsUrl }: Layout, current?: Guide): Html {
  const groups = [...Map.groupBy(guides, ({ group }) => group)].map(
    ([group, members]) => html`<p>${group}</p>
      <ul>${members.map((each) => listItem(`${each.name}.html`, each.title, each === current))}</ul>`,
  )
  const reference = html`<p>Reference</p>
      <ul>${contracts.map(({ page, title, tags }) => {
        const pages = html`<ul>${tags.map((tag) => listItem(`${tag.page}.html`, tag.name))}</ul>`
        return listItem(`${page}.html`, title, page === current?.name, pages)
      })}${workflowsUrl ? listItem(workflowsUrl, 'Your workflows') : ''}</ul>`
  return sidebar(html`${groups}${reference}`, current?.title ?? '')
}

function listItem(href: string, title: string, isCurrent = false, nested: Html | '' = ''): Html {
  return html`<li><a href="${href}"${isCurrent ? html` aria-current="page"` : ''}>${title}</a>${nested}</li>`
}

function sidebar(list: Html, current: string | Html): Html {
  return html`<nav aria-label="Guides" class="sidebar">${list}</nav>
      <details class="guide-menu"><summary>${current}</summary><nav aria-label="All guides">${list}</nav></details>`
}

/** A page of an account's workflows, as HTML with a marker for each of these values, one directory below the guides. */
export interface WorkflowPage {
  title: string
  summary: string
  workflows: string
  article: string
  contents: string
  markdown: string
}

export function workflowPageTemplate(layout: Layout): Promise<string> {
  const { pico, docs } = layout.assets
  const list = html`<p>Your workflows</p><ul>{{workflows}}</ul>
      <p>Docs</p><ul>${[listItem('../index.html', 'Guides'), ...layout.contracts.map(({ page, title }) => listItem(`../${page}.html`, title))]}</ul>`
  const body = html`<div class="columns">
      <div class="guides">${sidebar(list, '{{title}}')}</div>
      <main id="main">
        <article>{{article}}</article>
        <footer>This page as <a href="{{markdown}}">Markdown</a>.</footer>
      </main>
      <div class="contents">{{contents}}</div>
    </div>`
  return render(layout, {
    title: '{{title}}',
    summary: '{{summary}}',
    styles: [pico, docs],
    current: 'workflows',
    body,
    root: '../',
  })
}

/** @param page its values are HTML. */
export function fillWorkflowPage(template: string, page: WorkflowPage): string {
  return template.replaceAll(/\{\{(\w+)\}\}/g, (_marker, name: string) => page[name as keyof WorkflowPage])
}

export function tableOfContents({ sections }: Pick<Guide, 'sections'>): Html | '' {
  const shown = sections.filter(({ depth }) => depth === 2)
  if (shown.length < 2) return ''
  return html`<nav aria-label="On this page"><p>On this page</p>
        <ul>${shown.map(({ id, title }) => html`<li><a href="#${id}">${title}</a></li>`)}</ul></nav>`
}

/**
 * The page around the reference of a tag, as the Handlebars template that `redocly build-docs` takes. Redoc requests its
 * logo from a CDN; the policy in the page blocks that, also where the page is opened as a file.
 */
export function referenceTemplate(layout: Layout, contract: Contract, tag: ContractTag): Promise<string> {
  const policy = "img-src 'self' file: data:; connect-src 'none'"
  return render(layout, {
    title: `${tag.name} · ${contract.title}`,
    summary: tag.description,
    styles: [layout.assets.reference],
    current: contract.page,
    head: html`<meta http-equiv="Content-Security-Policy" content="${raw(policy)}" />
    {{{redocHead}}}`,
    heading: `${tag.name}: ${contract.title} reference`,
    body: html`<noscript>The operations are shown with JavaScript only. See the <a href="${contract.page}.html">overview</a>.</noscript>
    <div id="main" class="reference" tabindex="-1">{{{redocHTML}}}</div>`,
  })
}

/** Served for unknown paths at any depth, so its links are absolute. */
export function notFoundPage(layout: Layout): Promise<string> {
  const { pico, docs } = layout.assets
  const body = html`<main id="main" class="narrow">
      <h1>Page not found</h1>
      <p>It may have moved. See <a href="/docs/index.html">all guides</a>.</p>
    </main>`
  return render(layout, { title: 'Not found', summary: '', styles: [pico, docs], current: '', body, root: '/docs/' })
}
