// Playwright's service worker answers the viewer from the trace. This one, in front of it, keeps what a trace contains from
// becoming a page of the dashboard's origin: the viewer's own pages are the only documents, and a DOM snapshot may only be
// framed.
const base = new URL(self.registration.scope).pathname
const pages = ['index.html', 'snapshot.html'].map((name) => base + name)

/** In addition to Playwright's policy, which runs no script of a snapshot. The viewer's frames have the same sandbox. */
const snapshotPolicy = "form-action 'none'; frame-ancestors 'self'; sandbox allow-same-origin allow-scripts"

self.addEventListener('fetch', (event) => {
  const { destination, mode, url } = event.request
  const { pathname, searchParams } = new URL(url)
  if (mode !== 'navigate' || pages.includes(pathname)) return
  if (destination === 'iframe' && pathname.startsWith(`${base}snapshot/`)) {
    const respond = event.respondWith.bind(event)
    event.respondWith = (response) => respond(Promise.resolve(response).then(withPolicy))
    return
  }
  // With `dn`, the response is a download.
  if (pathname.startsWith(`${base}file/`) && searchParams.has('dn')) return
  event.stopImmediatePropagation()
  event.respondWith(new Response(null, { status: 404 }))
})

function withPolicy(response) {
  const headers = new Headers(response.headers)
  headers.append('Content-Security-Policy', snapshotPolicy)
  return new Response(response.body, { status: response.status, headers })
}

importScripts('playwright.sw.js')
