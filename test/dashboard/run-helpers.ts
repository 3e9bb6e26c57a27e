/** Helpers for tests of runs: users with API keys, queueing, and the pages of runs. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, onTestFinished } from 'vitest'
import { type SignedInUser, signIn } from '../support/dashboard.ts'
import { pageText } from '../support/html.ts'
import { type TestService, until } from '../support/service.ts'

export interface User extends SignedInUser {
  service: TestService
  /** The value of an API key named `test`. */
  key: string
}

export async function newUser(service: TestService): Promise<User> {
  const { id, createKey } = await service.createAccount()
  const user = await signIn(service, { accountId: id })
  const { value } = await createKey()
  return { ...user, service, key: value }
}

/** Queues a run with the Execution API. Returns its id. */
export async function queue(
  user: Pick<User, 'service' | 'key'>,
  workflowId: string,
  variableData: object,
  query = '',
): Promise<string> {
  const response = await fetch(`${user.service.executionUrl}/v1/execution/queue-remote/${workflowId}${query}`, {
    method: 'PUT',
    headers: { Authorization: `Bearer ${user.key}`, 'Content-Type': 'application/json' },
    body: JSON.stringify({ variableData }),
  })
  if (response.status !== 202) throw new Error(`Not queued: ${await response.text()}`)
  return ((await response.json()) as { id: string }).id
}

/** Returns the page's text. */
export async function page({ visitor }: SignedInUser, path: string): Promise<string> {
  const response = await visitor.get(path)
  expect(response.status).toBe(200)
  return pageText(response)
}

/** Waits until the run's page contains the text. */
export function waitForPage(user: User, id: string, words: string): Promise<string> {
  return until(`the page says "${words}"`, async () => {
    const text = await page(user, `/runs/${id}`)
    return text.includes(words) && text
  })
}

/** Queues a run that continues until `release` or the end of the test. */
export async function hold(user: User, workflowId = 'hold') {
  const file = join(user.service.dataDirectory, crypto.randomUUID())
  const id = await queue(user, workflowId, { file })
  const release = () => writeFileSync(file, '')
  onTestFinished(release)
  return { id, release }
}
