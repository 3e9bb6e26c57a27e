import axios from 'axios'
import { use, withServer } from '../lib/use.mjs'

export default use('axios', 'calls a local server', 7, () =>
  withServer('{"orders":7}', async (url) => (await axios.get(url)).data.orders),
)
