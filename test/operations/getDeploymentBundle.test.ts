/** Tests getDeploymentBundle by documented status. */
import { gunzipSync } from 'node:zlib'
import { expect, test } from 'vitest'
import { testForbidden, testNotFound, testUnauthorized } from './caller-tests.ts'
import { describeOperation } from './describe-operation.ts'
import { testInternalError, testUnavailable } from './failure-tests.ts'
import { testRateLimit } from './rate-limit-tests.ts'
import { testInvalidRequest, testNotAcceptable } from './request-tests.ts'

describeOperation(
  'getDeploymentBundle',
  { worker: false },
  {
    200(subject) {
      test('returns the definitions and files of the deployment of a run', async () => {
        const { request } = await subject.caller()
        await subject.send(request)
        const response = await fetch(`${subject.service.executionUrl}${request.path}`, {
          headers: request.headers as never,
        })
        const packed = Buffer.from(await response.arrayBuffer())
        const { workflows, files, externals } = JSON.parse(gunzipSync(packed).toString())
        expect(workflows.map(({ id }: { id: string }) => id)).toContain('greet')
        expect(files.length).toBeGreaterThan(0)
        expect(externals).toEqual([])
      })
    },
    400: testInvalidRequest,
    401: testUnauthorized,
    403: testForbidden,
    404: testNotFound,
    406: testNotAcceptable,
    429: testRateLimit,
    500: testInternalError,
    503: testUnavailable,
  },
)
