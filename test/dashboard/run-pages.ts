/** What the tests of runs have in common: users with API keys, the runs that they queue, and the pages of those. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, onTestFinished } from 'vitest'
import { pageText, type SignedInUser, signIn } from '../support/dashboard.ts'
import { type TestService, until } from '../support/service.ts'

export interface User extends SignedInUser {
  service: TestService
  /** The value of an API key named `test`. */
  key: string
}

export async function newUser(service: TestService): Promise<User> {
  const { id, createKey } = await service.createAccount()
  const person = await signIn(service, { accountId: id })
  const { value } = await createKey()
  return { ...person, service, key: value }
}

/** Queues a run over the Execution API, and returns its id. */
export async function queue(
  user: Pick<User, 'service' | 'key'>,
  workflowId: string,
  variableData: object,
  query = '',
): Promise<string> {
  const answer = await fetch(`${user.service.executionUrl}/v1/execution/queue-remote/${workflowId}${query}`, {
    method: 'PUT',
    headers: { Authorization: `Bearer ${user.key}`, 'Content-Type': 'application/json' },
    body: JSON.stringify({ variableData }),
  })
  if (answer.status !== 202) throw new Error(`Not queued: ${await answer.text()}`)
  return ((await answer.json()) as { id: string }).id
}

/** What the page says, without its markup. */
export async function page({ visitor }: SignedInUser, path: string): Promise<string> {
  const answer = await visitor.get(path)
  expect(answer.status).toBe(200)
  return pageText(answer)
}

/** The page of the run, as soon as it says this. */
export function pageSaying(user: User, id: string, words: string): Promise<string> {
  return until(`the page says "${words}"`, async () => {
    const text = await page(user, `/runs/${id}`)
    return text.includes(words) && text
  })
}

/** A run that goes on until it is released, which it is when the test ends. */
export async function hold(user: User, workflowId = 'hold') {
  const file = join(user.service.dataDirectory, crypto.randomUUID())
  const id = await queue(user, workflowId, { file })
  const release = () => writeFileSync(file, '')
  onTestFinished(release)
  return { id, release }
}
