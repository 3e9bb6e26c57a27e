import mysql from 'mysql2/promise'
import { refusal, use } from '../lib/use.mjs'

export default use('mysql2', 'is refused by a closed port', 'ECONNREFUSED', () =>
  refusal(() => mysql.createConnection('mysql://u:p@127.0.0.1:1/d')),
)
