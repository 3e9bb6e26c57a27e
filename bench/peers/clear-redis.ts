/** Removes everything from Redis, by `node clear-redis.ts URL`. */
import { Redis } from 'ioredis'

const redis = new Redis(process.argv[2] ?? '')
await redis.flushall()
redis.disconnect()
