/** `npx node examples/site/main.ts`: serves the example website on PORT (3080) until Ctrl-C. */
import { customerName } from './customers.ts'
import { startSite } from './site.ts'

const secrets = { token: 'lantern-tuesday-4711', password: 'kettle-friday-1138' }

async function main(): Promise<void> {
  const { url } = await startSite(secrets, Number(process.env.PORT || 3080))
  process.stdout.write(`The example website: ${url}/
For the service: EXAMPLE_PRIVATE_ADDRESSES=${new URL(url).host}

check-links                   url ${url}/
  members' pages              token ${secrets.token}
shop-sign-in, shop-orders     url ${url}/
  to sign in                  userName ${customerName}, password ${secrets.password}
page-to-file                  url ${url}/products
`)
}

await main().catch((error: Error) => {
  process.stderr.write(`The example website cannot start (${error.message}): set PORT to a free port.\n`)
  process.exitCode = 1
})
