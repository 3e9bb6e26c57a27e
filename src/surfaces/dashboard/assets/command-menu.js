/** Opens the page "Go to" as a dialog on Ctrl-K or Cmd-K: its form becomes a combobox, its links become the options. */
const link = document.querySelector('[data-command-menu]')
const isMac = /Mac|iPhone|iPad/.test(navigator.platform)

function element(name, attributes = {}, ...children) {
  const created = document.createElement(name)
  for (const [key, value] of Object.entries(attributes)) created.setAttribute(key, value)
  created.append(...children)
  return created
}

/** The links that the page shows for the text. */
async function findLinks(text) {
  const response = await fetch(`${link.href}?search=${encodeURIComponent(text)}`, { headers: { 'X-Background': '1' } })
  // Signed out in another tab.
  if (response.redirected) location.assign(response.url)
  const page = new DOMParser().parseFromString(await response.text(), 'text/html')
  return [...page.querySelectorAll('#destinations a')]
}

function createDialog() {
  const list = element('ul', { id: 'commands', role: 'listbox', 'aria-label': 'Destinations' })
  const input = element('input', {
    type: 'text',
    role: 'combobox',
    'aria-label': 'Go to',
    'aria-controls': 'commands',
    'aria-expanded': 'true',
    'aria-autocomplete': 'list',
    autocomplete: 'off',
    spellcheck: 'false',
    placeholder: 'Page, workflow, action or run ID',
  })
  const status = element('p', { class: 'unseen', role: 'status' })
  const dialog = element('dialog', { class: 'command-menu', 'aria-label': 'Go to' }, input, list, status)
  document.body.append(dialog)

  function select(option) {
    for (const each of list.children) each.setAttribute('aria-selected', String(each === option))
    if (option) input.setAttribute('aria-activedescendant', option.id)
    else input.removeAttribute('aria-activedescendant')
    option?.scrollIntoView({ block: 'nearest' })
  }

  function toOption(found, index) {
    const { group = '' } = found.closest('[data-group]').dataset
    const option = element('li', { id: `command-${index}`, role: 'option', 'aria-selected': 'false' })
    option.append(found.textContent.trim(), element('small', {}, group))
    option.addEventListener('click', () => location.assign(found.href))
    return option
  }

  let searching

  async function search() {
    const text = input.value
    const links = await findLinks(text.trim())
    // The text has changed in the meantime.
    if (text !== input.value) return
    list.replaceChildren(...links.map(toOption))
    select(list.firstElementChild)
    status.textContent = links.length === 0 ? 'No results' : links.length === 1 ? '1 result' : `${links.length} results`
    list.dataset.empty = links.length === 0 ? 'No results' : ''
  }

  /** Opens the selected option, once the options are those of the text. */
  async function choose() {
    await searching
    if (dialog.open) list.querySelector('[aria-selected="true"]')?.click()
  }

  function startSearch() {
    searching = search().catch(() => {
      status.textContent = 'The search failed'
    })
  }

  input.addEventListener('input', startSearch)
  input.addEventListener('keydown', (event) => {
    // Enter that ends the composition of a character, such as a Japanese one.
    if (event.isComposing) return
    const option = list.querySelector('[aria-selected="true"]')
    if (event.key === 'ArrowDown') select(option?.nextElementSibling ?? list.firstElementChild)
    else if (event.key === 'ArrowUp') select(option?.previousElementSibling ?? list.lastElementChild)
    else if (event.key === 'Enter') choose()
    else return
    event.preventDefault()
  })
  dialog.addEventListener('click', (event) => event.target === dialog && dialog.close())

  return () => {
    if (dialog.open) return dialog.close()
    dialog.showModal()
    input.select()
    startSearch()
  }
}

if (link) {
  let openDialog
  const open = (event) => {
    event.preventDefault()
    openDialog ??= createDialog()
    openDialog()
  }
  const hint = link.querySelector('kbd')
  hint.textContent = isMac ? '⌘ K' : 'Ctrl K'
  hint.hidden = false
  link.addEventListener('click', (event) => !event.ctrlKey && !event.metaKey && !event.shiftKey && open(event))
  addEventListener('keydown', (event) => {
    if (event.key.toLowerCase() === 'k' && (event.ctrlKey || event.metaKey)) open(event)
  })
}
