import { JSDOM } from 'jsdom'
import { use } from '../lib/use.mjs'

export default use('jsdom', 'parses a page, and applies its style sheet', 'Hello', () => {
  const { document, getComputedStyle } = new JSDOM('<style>h1 { display: flex }</style><h1>Hello</h1>').window
  if (getComputedStyle(document.querySelector('h1')).display !== 'flex') throw new Error('The style was not applied.')
  return document.querySelector('h1').textContent
})
