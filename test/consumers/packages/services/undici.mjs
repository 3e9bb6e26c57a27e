import { request } from 'undici'
import { use, withServer } from '../lib/use.mjs'

export default use('undici', 'calls a local server', 7, () =>
  withServer('{"orders":7}', async (url) => {
    const orders = /** @type {{ orders: number }} */ (await (await request(url)).body.json())
    return orders.orders
  }),
)
