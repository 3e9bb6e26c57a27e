import nodemailer from 'nodemailer'
import { use } from '../lib/use.mjs'

export default use('nodemailer', 'composes a message', 'Subject: Hello', async () => {
  const transport = nodemailer.createTransport({ streamTransport: true, buffer: true })
  const { message } = await transport.sendMail({
    from: 'a@example.com',
    to: 'b@example.com',
    subject: 'Hello',
    text: 'x',
  })
  return /^Subject: .*$/m.exec(message.toString())[0].trim()
})
