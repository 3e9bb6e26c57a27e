// Search, copy buttons, the colour switch, a landmark for Redoc's menu, and addresses that moved. Every page works without this script.
;(() => {
  const root = document.documentElement

  function element(name, attributes = {}, ...children) {
    const created = document.createElement(name)
    for (const [key, value] of Object.entries(attributes)) created.setAttribute(key, value)
    created.append(...children)
    return created
  }

  function enableThemeButton() {
    const button = document.querySelector('.theme-button')
    const update = () => button.setAttribute('aria-pressed', String(docsTheme.isDark()))
    button.hidden = false
    button.addEventListener('click', () => docsTheme.toggle())
    root.addEventListener('themechange', update)
    update()
  }

  function addCopyButtons() {
    // Undefined on pages served over plain HTTP from another machine.
    if (!navigator.clipboard) return
    for (const block of document.querySelectorAll('article pre')) {
      const button = element('button', { type: 'button', class: 'copy' }, 'Copy')
      const status = element('span', { class: 'unseen', role: 'status' })
      button.addEventListener('click', async () => {
        await navigator.clipboard.writeText(block.textContent)
        button.textContent = status.textContent = 'Copied'
        setTimeout(() => {
          button.textContent = 'Copy'
          status.textContent = ''
        }, 2000)
      })
      const frame = element('div', { class: 'code' })
      block.replaceWith(frame)
      frame.append(block, button, status)
    }
  }

  /** Redoc's menu is not a landmark, and is replaced when the window becomes narrow. */
  function labelReferenceMenu() {
    const reference = document.querySelector('.reference')
    if (!reference) return
    const label = () => {
      const menu = reference.querySelector('.menu-content:not([role])')
      menu?.setAttribute('role', 'navigation')
      menu?.setAttribute('aria-label', 'Operations')
    }
    new MutationObserver(label).observe(reference, { childList: true, subtree: true })
    label()
  }

  const loadScript = (source) =>
    new Promise((resolve, reject) => {
      const script = element('script', { src: source })
      script.addEventListener('load', resolve)
      script.addEventListener('error', () => reject(new Error(`${source} failed to load`)))
      document.head.append(script)
    })

  let searchIndexes
  /** Loads the indexes when they are first needed. Pages of an account's workflows have a second one. */
  function loadIndexes() {
    const { minisearch, index, workflowsIndex } = root.dataset
    searchIndexes ??= Promise.all([minisearch, index, ...(workflowsIndex ? [workflowsIndex] : [])].map(loadScript))
      .then(() => [docsIndex, ...(workflowsIndex ? [globalThis.workflowsIndex] : [])])
      .then((indexes) => indexes.map((each) => MiniSearch.loadJSON(each.index, each.options)))
      .catch((error) => {
        // Retry at the next keystroke.
        searchIndexes = undefined
        throw error
      })
    return searchIndexes
  }

  async function find(text) {
    return searchDocs(await loadIndexes(), text).slice(0, resultsMax)
  }

  const resultsMax = 12

  function resultItem({ title, place, href, excerpt }, index) {
    const link = element('a', { href: root.dataset.root + href, tabindex: '-1' })
    link.append(element('strong', {}, title), element('span', { class: 'place' }, place))
    if (excerpt) link.append(element('span', { class: 'excerpt' }, excerpt))
    return element('li', { id: `result-${index}`, role: 'option', 'aria-selected': String(index === 0) }, link)
  }

  function createSearchDialog() {
    const input = element('input', {
      // With type `search`, Escape would clear the field instead of closing the dialog.
      type: 'text',
      enterkeyhint: 'search',
      role: 'combobox',
      placeholder: 'Search guides and operations',
      'aria-label': 'Search guides and operations',
      'aria-controls': 'results',
      'aria-expanded': 'false',
      'aria-autocomplete': 'list',
      autocomplete: 'off',
      spellcheck: 'false',
    })
    const list = element('ul', { id: 'results', role: 'listbox', 'aria-label': 'Results' })
    const status = element('p', { class: 'status', role: 'status' })
    const close = element('button', { type: 'button', class: 'close' }, 'Close')
    const dialog = element('dialog', { class: 'search', 'aria-label': 'Search' }, input, close, status, list)
    document.body.append(dialog)
    close.addEventListener('click', () => dialog.close())
    dialog.addEventListener('click', (event) => event.target === dialog && dialog.close())

    const select = (option) => {
      for (const each of list.children) each.setAttribute('aria-selected', String(each === option))
      if (option) input.setAttribute('aria-activedescendant', option.id)
      else input.removeAttribute('aria-activedescendant')
      option?.scrollIntoView({ block: 'nearest' })
    }

    async function search() {
      const text = input.value.trim()
      const found = text === '' ? [] : await find(text)
      // The text may have changed while the index was loading.
      if (text !== input.value.trim()) return
      list.replaceChildren(...found.map(resultItem))
      input.setAttribute('aria-expanded', String(found.length > 0))
      select(list.firstElementChild)
      const count = found.length === 1 ? '1 result' : `${found.length} results`
      status.textContent = text === '' ? '' : found.length === 0 ? `No results for “${text}”` : count
    }

    input.addEventListener('input', search)
    input.addEventListener('keydown', (event) => {
      const option = list.querySelector('[aria-selected="true"]')
      if (event.key === 'ArrowDown') select(option?.nextElementSibling ?? option)
      else if (event.key === 'ArrowUp') select(option?.previousElementSibling ?? option)
      else if (event.key === 'Enter') option?.querySelector('a').click()
      else return
      event.preventDefault()
    })
    list.addEventListener('click', () => dialog.close())

    return () => {
      if (dialog.open) return
      dialog.showModal()
      input.select()
      loadIndexes()
    }
  }

  function enableSearch() {
    let openDialog
    const open = () => {
      openDialog ??= createSearchDialog()
      openDialog()
    }
    const button = document.querySelector('.search-button')
    button.hidden = false
    button.addEventListener('click', open)
    // In the capture phase, because Redoc binds the same keys to its own search.
    addEventListener(
      'keydown',
      (event) => {
        const isTyping = event.target.closest?.('input, textarea, select, [contenteditable]')
        const isSlash = event.key === '/' && !isTyping && !event.ctrlKey && !event.metaKey && !event.altKey
        const isShortcut = event.key.toLowerCase() === 'k' && (event.ctrlKey || event.metaKey)
        if (!isSlash && !isShortcut) return
        event.preventDefault()
        event.stopImmediatePropagation()
        open()
      },
      { capture: true },
    )
  }

  /** The reference of a document was one page: leads the address of an operation there to the page of its tag. */
  function openMovedOperation() {
    const [, kind, name = ''] = /^#(\/|operation\/|tag\/)(.*)$/.exec(decodeURI(location.hash).toLowerCase()) ?? []
    if (!kind) return
    const isMeant = ({ hash }) => {
      if (kind === '/') return `/${name}/`.startsWith(`${hash.slice(1)}/`)
      return kind === 'tag/'
        ? hash.startsWith(`#/${name.replaceAll('%20', '-').replaceAll(' ', '-')}/`)
        : hash.endsWith(`/${name}`)
    }
    const link = [...document.querySelectorAll('article a[href*="#/"]')].find(isMeant)
    if (link) location.replace(link.href)
  }

  enableThemeButton()
  openMovedOperation()
  addCopyButtons()
  labelReferenceMenu()
  enableSearch()
})()
