// Applies the colour scheme before the page is drawn: the reader's choice, or else the system's. The choice is kept
// under Redoc's key, so that guides and reference agree.
;(() => {
  const key = 'redoc.colorMode'
  const root = document.documentElement
  const systemDark = matchMedia('(prefers-color-scheme: dark)')

  // localStorage throws where cookies are blocked.
  function savedMode() {
    try {
      const mode = localStorage.getItem(key)
      return mode === 'dark' || mode === 'light' ? mode : undefined
    } catch {
      return undefined
    }
  }

  function apply(mode) {
    root.classList.toggle('dark', mode === 'dark')
    root.classList.toggle('light', mode === 'light')
  }

  const update = () => apply(savedMode() ?? (systemDark.matches ? 'dark' : 'light'))
  const isDark = () => root.classList.contains('dark')
  const syncTheme = () => {
    root.dataset.theme = isDark() ? 'dark' : 'light'
  }

  update()
  syncTheme()
  systemDark.addEventListener('change', update)
  addEventListener('storage', update)
  // Redoc changes the class, too.
  new MutationObserver(() => {
    syncTheme()
    root.dispatchEvent(new Event('themechange'))
  }).observe(root, { attributeFilter: ['class'] })

  globalThis.docsTheme = {
    isDark,
    toggle() {
      // Redoc keeps the mode in its state and would undo a change made without its own switch.
      const redocSwitch = document.querySelector('[data-testid="color-mode-switcher"]')
      if (redocSwitch) return redocSwitch.click()
      const mode = isDark() ? 'light' : 'dark'
      try {
        localStorage.setItem(key, mode)
      } catch {
        // The choice then applies to this page only.
      }
      apply(mode)
    },
  }
})()
