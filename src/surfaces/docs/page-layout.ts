/** What surrounds every page of the docs: the bar at the top, the list of guides, what is on the page, and the next one. */
import { html, raw } from 'hono/html'
import type { Contract } from './contracts.ts'
import type { Guide } from './guides.ts'

type Html = ReturnType<typeof html>

/** The names of the files that pages load. */
export interface Assets {
  pico: string
  docs: string
  reference: string
  referenceScript: string
  theme: string
  script: string
  redoc: string
  searcher: string
  index: string
  icon: string
}

export interface Surroundings {
  assets: Assets
  guides: readonly Guide[]
  contracts: readonly Contract[]
}

interface Frame {
  title: string
  summary: string
  styles: readonly string[]
  scripts?: readonly string[]
  /** Of the page that is shown; none of the bar's links is current for the page of an error. */
  current: string
  /** For a page whose own headings begin below the first level. */
  heading?: string
  body: Html
  /** Stands before every address; empty, so that pages work as files. */
  root?: string
}

const searchIcon = 'M10.5 4a6.5 6.5 0 1 0 0 13 6.5 6.5 0 0 0 0-13zM15.5 15.5 20 20'
const themeIcon = 'M12 3a9 9 0 1 0 0 18 9 9 0 0 0 0-18zM12 3v18M12 8h7M12 13h8.9M12 18h6'

function icon(path: string): Html {
  return html`<svg class="icon" viewBox="0 0 24 24" aria-hidden="true"><path d="${path}" /></svg>`
}

async function frame(
  around: Surroundings,
  { title, summary, styles, scripts = [], current, heading = '', body, root = '' }: Frame,
) {
  const { assets, contracts, guides } = around
  const isGuide = guides.some(({ name }) => name === current)
  const links = [
    { href: 'index.html', title: 'Guides', here: isGuide },
    ...contracts.map((each) => ({ href: `${each.page}.html`, title: each.title, here: each.page === current })),
  ]
  const here = html` aria-current="true"`
  return String(
    await html`<!doctype html>
<html lang="en" data-searcher="${root}${assets.searcher}" data-index="${root}${assets.index}" data-root="${root}">
  <head>
    <meta charset="utf-8" />
    <meta name="viewport" content="width=device-width, initial-scale=1" />
    <meta name="color-scheme" content="light dark" />
    <meta name="description" content="${summary}" />
    <title>${title} · execution-service docs</title>
    <link rel="icon" href="${root}${assets.icon}" type="image/svg+xml" />
    ${styles.map((style) => html`<link rel="stylesheet" href="${root}${style}" />`)}
    <script src="${root}${assets.theme}"></script>
    ${[...scripts, assets.script].map((script) => html`<script defer src="${root}${script}"></script>`)}
  </head>
  <body>
    <a class="skip" href="#main">Skip to content</a>
    <header class="bar">
      <a class="brand" href="${root}index.html"><img src="${root}${assets.icon}" alt="" width="24" height="24" /><span>execution-service</span></a>
      <nav aria-label="Docs"><ul>${links.map(
        (each) => html`<li><a href="${root}${each.href}"${each.here ? here : ''}>${each.title}</a></li>`,
      )}</ul></nav>
      ${heading && html`<h1 class="unseen">${heading}</h1>`}
      <button type="button" class="search-button" hidden>${icon(searchIcon)}<span>Search</span><kbd aria-hidden="true">/</kbd></button>
      <button type="button" class="theme-button" aria-label="Dark colours" aria-pressed="false" hidden>${icon(themeIcon)}</button>
    </header>
    ${body}
  </body>
</html>
`,
  )
}

export function guidePage(around: Surroundings, guide: Guide): Promise<string> {
  const { assets, guides } = around
  const at = guides.indexOf(guide)
  const [before, after] = [guides[at - 1], guides[at + 1]]
  const versions = around.contracts.map(({ title, version }) => `${title} ${version}`)
  const body = html`<div class="columns">
      <div class="guides">${guideList(around, guide)}</div>
      <main id="main">
        <article>${raw(guide.html)}</article>
        <nav class="turn" aria-label="Previous and next">
          ${before ? html`<a rel="prev" href="${before.name}.html"><span>Previous</span>${before.title}</a>` : html`<span></span>`}
          ${after ? html`<a rel="next" href="${after.name}.html"><span>Next</span>${after.title}</a>` : ''}
        </nav>
        <footer>${versions.join(', ')}. This page as <a href="${guide.name}.md">Markdown</a>, all of them for language models: <a href="llms.txt">llms.txt</a>.</footer>
      </main>
      <div class="contents">${contentsOf(guide)}</div>
    </div>`
  const { title, summary, name } = guide
  return frame(around, { title, summary, styles: [assets.pico, assets.docs], current: name, body })
}

/** Open where there is room, by the style sheet; on a phone behind its summary. */
function guideList({ guides, contracts }: Surroundings, current: Guide): Html {
  const here = html` aria-current="page"`
  const item = (href: string, title: string, isHere = false) =>
    html`<li><a href="${href}"${isHere ? here : ''}>${title}</a></li>`
  const groups = [...Map.groupBy(guides, ({ group }) => group)].map(
    ([group, members]) => html`<p>${group}</p>
      <ul>${members.map((each) => item(`${each.name}.html`, each.title, each === current))}</ul>`,
  )
  const reference = html`<p>Reference</p>
      <ul>${contracts.map(({ page, title }) => item(`${page}.html`, title))}</ul>`
  return html`<nav aria-label="Guides" class="beside">${groups}${reference}</nav>
      <details class="above"><summary>${current.title}</summary><nav aria-label="All guides">${groups}${reference}</nav></details>`
}

function contentsOf({ sections }: Guide): Html | '' {
  const shown = sections.filter(({ depth }) => depth === 2)
  if (shown.length < 2) return ''
  return html`<nav aria-label="On this page"><p>On this page</p>
        <ul>${shown.map(({ id, title }) => html`<li><a href="#${id}">${title}</a></li>`)}</ul></nav>`
}

/**
 * Redoc brings the main part of the page and its headings.
 *
 * @param script the file that has the document.
 */
export function referencePage(around: Surroundings, contract: Contract, script: string): Promise<string> {
  const { file, page, title, summary } = contract
  const { assets } = around
  const body = html`<div id="main" class="reference" tabindex="-1">
      <div id="redoc">
        <div class="alone">
          <p>The reference of the ${title} is drawn by your browser, which needs JavaScript for it. The same is in the
          document, as <a href="${file}.json">JSON</a> and as <a href="${file}.yaml">YAML</a>;
          <a href="index.html">the guides</a> and <a href="llms.txt">llms.txt</a> need no JavaScript.</p>
        </div>
      </div>
    </div>`
  const scripts = [assets.redoc, script, assets.referenceScript]
  return frame(around, {
    title,
    summary,
    styles: [assets.reference],
    scripts,
    current: page,
    heading: `${title} reference`,
    body,
  })
}

/** For addresses that lead nowhere; its own links lead to the site from anywhere. */
export function notFoundPage(around: Surroundings): Promise<string> {
  const { assets } = around
  const body = html`<main id="main" class="alone">
      <h1>There is no such page</h1>
      <p>The docs have changed, or the address has. <a href="/docs/index.html">All guides</a> are at the start of the
      docs.</p>
    </main>`
  const styles = [assets.pico, assets.docs]
  return frame(around, { title: 'Not found', summary: '', styles, current: '', body, root: '/docs/' })
}
