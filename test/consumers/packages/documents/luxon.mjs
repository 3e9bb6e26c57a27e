import { DateTime } from 'luxon'
import { use } from '../lib/use.mjs'

export default use(
  'luxon',
  'adds an hour across a change of daylight saving time',
  '2026-03-29T03:30:00.000+02:00',
  () => DateTime.fromISO('2026-03-29T01:30', { zone: 'Europe/Berlin' }).plus({ hours: 1 }).toISO(),
)
