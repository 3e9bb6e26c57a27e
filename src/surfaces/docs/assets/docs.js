// What pages of the docs do beyond being read: search, copying code, changing colours, showing where one is.
;(() => {
  const root = document.documentElement

  function element(name, attributes = {}, ...children) {
    const made = document.createElement(name)
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value)
    made.append(...children)
    return made
  }

  function themeButton() {
    const button = document.querySelector('.theme-button')
    const tell = () => button.setAttribute('aria-pressed', String(docsTheme.isDark()))
    button.hidden = false
    button.addEventListener('click', () => docsTheme.toggle())
    root.addEventListener('themechange', tell)
    tell()
  }

  function copyButtons() {
    // Browsers have none for pages of plain HTTP from another machine.
    if (!navigator.clipboard) return
    for (const block of document.querySelectorAll('article pre')) {
      const button = element('button', { type: 'button', class: 'copy' }, 'Copy')
      const said = element('span', { class: 'unseen', role: 'status' })
      button.addEventListener('click', async () => {
        await navigator.clipboard.writeText(block.textContent)
        button.textContent = 'Copied'
        said.textContent = 'Copied'
        setTimeout(() => {
          button.textContent = 'Copy'
          said.textContent = ''
        }, 2000)
      })
      const frame = element('div', { class: 'code' })
      block.replaceWith(frame)
      frame.append(block, button, said)
    }
  }

  /** Marks the section that is read, which is the last one whose heading has come up. */
  function whereabouts() {
    const links = [...document.querySelectorAll('.contents a')]
    const headings = links.map((link) => document.getElementById(decodeURIComponent(link.hash.slice(1))))
    if (headings.length === 0) return
    const mark = () => {
      const atEnd = innerHeight + scrollY >= root.scrollHeight - 2
      const passed = headings.filter((heading) => heading.getBoundingClientRect().top < innerHeight / 4).length
      const current = atEnd && scrollY > 0 ? headings.length - 1 : passed - 1
      for (const [index, link] of links.entries()) {
        if (index === current) link.setAttribute('aria-current', 'location')
        else link.removeAttribute('aria-current')
      }
    }
    addEventListener('scroll', mark, { passive: true })
    mark()
  }

  const load = (source) =>
    new Promise((resolve, reject) => {
      const script = element('script', { src: source })
      script.addEventListener('load', resolve)
      script.addEventListener('error', () => reject(new Error(`${source} cannot be loaded.`)))
      document.head.append(script)
    })

  let searcher
  // Only whoever searches pays for the index.
  function ready() {
    searcher ??= Promise.all([load(root.dataset.searcher), load(root.dataset.index)])
      .then(() => MiniSearch.loadJSON(docsIndex.index, docsIndex.options))
      .catch((error) => {
        // The next letter tries anew.
        searcher = undefined
        throw error
      })
    return searcher
  }

  const resultsMax = 12

  function result({ id, title, place, href, excerpt }, index) {
    const link = element('a', { href: root.dataset.root + href, tabindex: '-1' })
    link.append(element('strong', {}, title), element('span', { class: 'place' }, place))
    if (excerpt) link.append(element('span', { class: 'excerpt' }, excerpt))
    return element('li', { id: `result-${id}`, role: 'option', 'aria-selected': String(index === 0) }, link)
  }

  function searchDialog() {
    const input = element('input', {
      // A field of the type `search` takes the Escape that is meant to close the dialog.
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
    const said = element('p', { class: 'said', role: 'status' })
    const close = element('button', { type: 'button', class: 'close' }, 'Close')
    const dialog = element('dialog', { class: 'search', 'aria-label': 'Search' }, input, close, said, list)
    document.body.append(dialog)
    close.addEventListener('click', () => dialog.close())
    dialog.addEventListener('click', (event) => event.target === dialog && dialog.close())

    const select = (option) => {
      for (const each of list.children) each.setAttribute('aria-selected', String(each === option))
      if (option) input.setAttribute('aria-activedescendant', option.id)
      else input.removeAttribute('aria-activedescendant')
      option?.scrollIntoView({ block: 'nearest' })
    }
    const selected = () => list.querySelector('[aria-selected="true"]')

    async function find() {
      const text = input.value.trim()
      const found = text === '' ? [] : (await ready()).search(text).slice(0, resultsMax)
      // Another letter may have been typed meanwhile.
      if (text !== input.value.trim()) return
      list.replaceChildren(...found.map(result))
      input.setAttribute('aria-expanded', String(found.length > 0))
      select(list.firstElementChild)
      const count = found.length === 1 ? '1 result' : `${found.length} results`
      said.textContent = text === '' ? '' : found.length === 0 ? 'Nothing has these words.' : count
    }

    input.addEventListener('input', find)
    input.addEventListener('keydown', (event) => {
      const option = selected()
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
      ready()
    }
  }

  function searching() {
    let dialog
    const open = () => {
      dialog ??= searchDialog()
      dialog()
    }
    const button = document.querySelector('.search-button')
    button.hidden = false
    button.addEventListener('click', open)
    // Before Redoc, which has a search of its own reference by the same keys.
    addEventListener(
      'keydown',
      (event) => {
        const writes = event.target.closest?.('input, textarea, select, [contenteditable]')
        const isSlash = event.key === '/' && !writes && !event.ctrlKey && !event.metaKey && !event.altKey
        const isShortcut = event.key.toLowerCase() === 'k' && (event.ctrlKey || event.metaKey)
        if (!isSlash && !isShortcut) return
        event.preventDefault()
        event.stopImmediatePropagation()
        open()
      },
      { capture: true },
    )
  }

  themeButton()
  copyButtons()
  whereabouts()
  searching()
})()
