/** Checks that examples come in pairs: a response has the name of the request that it answers. */
import {
  describePlace,
  listOperations,
  type MediaTypeObject,
  type ResponseObject,
  resolve,
} from '../../openapi/document.ts'
import type { CheckedContract, Finding } from './checked-contract.ts'

export function checkExamplePairs(contracts: readonly Pick<CheckedContract, 'name' | 'current'>[]): Finding[] {
  return contracts.flatMap(({ name, current }) =>
    listOperations(current).flatMap(({ path, method, operation }) => {
      const requests = namesOf(operation.requestBody?.content)
      if (requests === undefined) return []
      return Object.entries(operation.responses).flatMap(([status, reference]) => {
        const responses = namesOf(resolve<ResponseObject>(current, reference).content)
        const isPaired = requests.every((it) => responses?.includes(it)) && responses?.length === requests.length
        if (!status.startsWith('2') || responses === undefined || isPaired) return []
        return {
          severity: 'error' as const,
          message: `The examples of the response ${status} are not those of the request: ${responses.join(', ') || 'none'} instead of ${requests.join(', ')}.`,
          location: describePlace(name, current, ['paths', path, method]),
          reason: 'A reader, and a caller of the mock, looks for the response to a request by its name.',
          fix: 'Name both examples alike.',
        }
      })
    }),
  )
}

/** The names of all examples; `undefined` without a body. */
function namesOf(content: Record<string, MediaTypeObject> | undefined): string[] | undefined {
  return content && Object.values(content).flatMap(({ examples = {} }) => Object.keys(examples))
}
