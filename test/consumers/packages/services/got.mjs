import got from 'got'
import { use, withServer } from '../lib/use.mjs'

export default use('got', 'calls a local server', 7, () =>
  withServer('{"orders":7}', async (url) => (await got(url).json()).orders),
)
