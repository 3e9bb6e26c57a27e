import { addMonths, format } from 'date-fns'
import { de } from 'date-fns/locale'
import { use } from '../lib/use.mjs'

export default use('date-fns', 'adds a month, in another language', '28. Februar', () =>
  format(addMonths(new Date(2026, 0, 31), 1), 'd. MMMM', { locale: de }),
)
