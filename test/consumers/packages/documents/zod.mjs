import { z } from 'zod'
import { use } from '../lib/use.mjs'

export default use(
  'zod',
  'checks an e-mail address',
  'ada@example.com',
  () => z.object({ mail: z.email() }).parse({ mail: 'ada@example.com' }).mail,
)
