import { MongoClient } from 'mongodb'
import { refusal, use } from '../lib/use.mjs'

export default use('mongodb', 'is refused by a closed port', 'ECONNREFUSED', () =>
  refusal(() => new MongoClient('mongodb://127.0.0.1:1', { serverSelectionTimeoutMS: 100 }).connect()),
)
