import { parse } from 'csv-parse/sync'
import { use } from '../lib/use.mjs'

export default use('csv-parse', 'reads a CSV text', [{ name: 'Ada', orders: '7' }], () =>
  parse('name,orders\nAda,7\n', { columns: true }),
)
