/**
 * `npx node examples/site/main.ts`: serves the example website on PORT (3080) until Ctrl-C. Options make its sessions end
 * and its sign-in harder, such as `--session-seconds 60 --totp --captcha-rate 0.01`.
 */
import { parseArgs } from 'node:util'
import { type CustomerOptions, customerName } from './customers.ts'
import { startSite } from './site.ts'

const secrets = { token: 'lantern-tuesday-4711', password: 'kettle-friday-1138' }
const totpSeed = 'JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP'

async function main(): Promise<void> {
  const options = readOptions()
  const { url } = await startSite(secrets, Number(process.env.PORT || 3080), options)
  const seed = options.totpSeed === undefined ? '' : `, TOTP seed ${totpSeed}`
  process.stdout.write(`The example website: ${url}/
For the service: EXAMPLE_PRIVATE_ADDRESSES=${new URL(url).host}

check-links                   url ${url}/
  members' pages              token ${secrets.token}
shop-sign-in, shop-orders     url ${url}/
  to sign in                  userName ${customerName}, password ${secrets.password}${seed}
page-to-file                  url ${url}/products
`)
}

function readOptions(): CustomerOptions {
  const { values } = parseArgs({
    options: {
      'session-seconds': { type: 'string' },
      'end-rate': { type: 'string' },
      'one-session': { type: 'boolean' },
      totp: { type: 'boolean' },
      'mail-code': { type: 'boolean' },
      'captcha-rate': { type: 'string' },
      seed: { type: 'string' },
    },
  })
  return {
    ...(values['session-seconds'] && { sessionSeconds: Number(values['session-seconds']) }),
    ...(values['end-rate'] && { endRate: Number(values['end-rate']) }),
    ...(values['captcha-rate'] && { captchaRate: Number(values['captcha-rate']) }),
    ...(values.seed && { seed: values.seed }),
    ...(values.totp && { totpSeed }),
    oneSession: values['one-session'] ?? false,
    mailCode: values['mail-code'] ?? false,
    onMail: ({ customer, code }) => void process.stdout.write(`Mail to ${customer}: the code is ${code}\n`),
  }
}

await main().catch((error: Error) => {
  process.stderr.write(`The example website cannot start (${error.message}): set PORT to a free port.\n`)
  process.exitCode = 1
})
