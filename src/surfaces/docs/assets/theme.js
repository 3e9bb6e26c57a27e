// The colours of the page, before it is drawn: as they were chosen, or else as the system has them. The choice is kept
// where Redoc keeps it, so that guides and reference agree.
;(() => {
  const key = 'redoc.colorMode'
  const root = document.documentElement
  const dark = matchMedia('(prefers-color-scheme: dark)')

  // Nothing may be kept where cookies are refused.
  function chosen() {
    try {
      const mode = localStorage.getItem(key)
      return mode === 'dark' || mode === 'light' ? mode : undefined
    } catch {
      return undefined
    }
  }

  function show(mode) {
    root.classList.toggle('dark', mode === 'dark')
    root.classList.toggle('light', mode === 'light')
  }

  function follow() {
    show(chosen() ?? (dark.matches ? 'dark' : 'light'))
  }

  follow()
  dark.addEventListener('change', follow)
  addEventListener('storage', follow)
  root.dataset.theme = root.classList.contains('dark') ? 'dark' : 'light'
  // Redoc changes the class by itself.
  new MutationObserver(() => {
    root.dataset.theme = root.classList.contains('dark') ? 'dark' : 'light'
    root.dispatchEvent(new Event('themechange'))
  }).observe(root, { attributeFilter: ['class'] })

  globalThis.docsTheme = {
    isDark: () => root.classList.contains('dark'),
    toggle() {
      const mode = root.classList.contains('dark') ? 'light' : 'dark'
      // Redoc remembers what it has chosen, and would change the page back.
      const ofRedoc = document.querySelector('[data-testid="color-mode-switcher"]')
      if (ofRedoc) return ofRedoc.click()
      try {
        localStorage.setItem(key, mode)
      } catch {
        // It then holds for this page.
      }
      show(mode)
    },
  }
})()
