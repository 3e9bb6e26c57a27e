import { google } from 'googleapis'
import { use, withServer } from '../lib/use.mjs'

export default use('googleapis', 'lists the files of a local server', 'report.pdf', () =>
  withServer('{"files":[{"name":"report.pdf"}]}', async (url) => {
    const auth = new google.auth.OAuth2()
    auth.setCredentials({ access_token: 'token' })
    const { data } = await google.drive({ version: 'v3', auth, rootUrl: `${url}/` }).files.list()
    return data.files[0].name
  }),
)
