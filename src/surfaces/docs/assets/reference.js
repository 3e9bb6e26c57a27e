// Draws the document with Redoc, and adds to Redoc what people without eyes or mouse need.
;(() => {
  const options = {
    // It would tell its maker who reads.
    disableTelemetry: true,
    hideDownloadButtons: true,
    sortRequiredPropsFirst: true,
    jsonSamplesExpandLevel: 4,
    // The bar stays at the top where there is room.
    scrollYOffset: () => (getComputedStyle(bar).position === 'sticky' ? bar.offsetHeight : 0),
  }

  const bar = document.querySelector('.bar')
  const page = document.getElementById('redoc')

  /** Redoc's list of operations is no landmark by itself. */
  function nameMenu() {
    const menu = page.querySelector('.menu-content:not([role])')
    menu?.setAttribute('role', 'navigation')
    menu?.setAttribute('aria-label', 'Operations')
  }

  new MutationObserver(nameMenu).observe(page, { childList: true, subtree: true })
  init(docsDocument, options, page)
})()
