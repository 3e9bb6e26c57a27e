/** Commands that reach a service over its API: the client for `--url`, and what its refusals mean for a person. */
import { createExecutionClient, type ExecutionClient } from '../client/index.ts'
import { CommandError } from './output.ts'

export interface UrlOptions {
  url: string
  account?: string
  environment?: string
  json?: boolean
}

/** @throws {CommandError} */
export function connect({ url, account, environment }: UrlOptions, scope: string): ExecutionClient {
  const { API_KEY: apiKey = '' } = process.env
  if (account !== undefined) throw new CommandError('Leave out --account: the key in API_KEY decides the account.')
  if (environment !== undefined)
    throw new CommandError('Leave out --environment: the key in API_KEY decides the environment.')
  if (!URL.canParse(url) || !/^https?:/.test(url))
    throw new CommandError(
      `--url is "${url}": give the URL of the Execution API, such as https://execution.example.com.`,
    )
  if (!/^[!-~]+$/.test(apiKey))
    throw new CommandError(`API_KEY is not set: it must have an API key with the scope ${scope}.`)
  return createExecutionClient({ baseUrl: url.replace(/\/$/, ''), apiKey })
}

export function refusal(error: unknown, response: Response | undefined, scope: string): CommandError {
  if (response?.status === 401) return new CommandError('The service does not accept the key in API_KEY.')
  if (response?.status === 403) return new CommandError(`The key in API_KEY lacks the scope ${scope}.`)
  const {
    detail,
    title,
    errors = [],
  } = Object(error) as {
    detail?: string
    title?: string
    errors?: MemberError[]
  }
  const lines = (detail ?? title ?? 'The service did not respond.').replace('`allowBreaking`', '`--allow-breaking`')
  return new CommandError([lines, ...listErrors(errors)].join('\n'))
}

interface MemberError {
  pointer?: string
  parameter?: string
  header?: string
  detail: string
}

/** A line for each member of a request that is invalid. */
export function listErrors(errors: readonly MemberError[]): string[] {
  return errors.map((each) => `  ${each.pointer ?? each.parameter ?? each.header ?? ''} ${each.detail}`)
}
