import pg from 'pg'
import { refusal, use } from '../lib/use.mjs'

export default use('pg', 'is refused by a closed port', 'ECONNREFUSED', () =>
  refusal(() => new pg.Client('postgres://u:p@127.0.0.1:1/d').connect()),
)
