// Playwright's service worker answers the viewer from the trace. It shows DOM snapshots with a policy that runs none of
// their scripts, but files of the trace without one: such a file must not become a page of this origin.
self.addEventListener('fetch', (event) => {
  const { pathname, searchParams } = new URL(event.request.url)
  const isFile = pathname.startsWith(`${new URL(self.registration.scope).pathname}file/`)
  // With `dn`, the response is a download.
  if (event.request.mode !== 'navigate' || !isFile || searchParams.has('dn')) return
  event.stopImmediatePropagation()
  event.respondWith(new Response(null, { status: 404 }))
})
importScripts('playwright.sw.js')
