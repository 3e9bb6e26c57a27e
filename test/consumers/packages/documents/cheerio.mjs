import { load } from 'cheerio'
import { use } from '../lib/use.mjs'

export default use('cheerio', 'selects an element of a page', 'Hello', () =>
  load('<main><h1>Hello</h1></main>')('main > h1').text(),
)
