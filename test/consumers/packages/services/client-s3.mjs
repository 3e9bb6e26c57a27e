import { ListBucketsCommand, S3Client } from '@aws-sdk/client-s3'
import { use, withServer } from '../lib/use.mjs'

const buckets =
  '<ListAllMyBucketsResult><Buckets><Bucket><Name>reports</Name></Bucket></Buckets></ListAllMyBucketsResult>'

export default use('client-s3', 'lists the buckets of a local server', 'reports', () =>
  withServer(buckets, async (endpoint) => {
    const credentials = { accessKeyId: 'id', secretAccessKey: 'key' }
    const client = new S3Client({ endpoint, region: 'eu-central-1', forcePathStyle: true, credentials })
    return (await client.send(new ListBucketsCommand())).Buckets[0].Name
  }),
)
