/** Helpers for tests of the queue form: submitting it, and reading the stored runs. */
import { readConfig } from '../../src/config/config.ts'
import { openKeyRing } from '../../src/domain/installation.ts'
import { secretsAad } from '../../src/domain/runs/run.ts'
import { Encryption } from '../../src/storage/encryption.ts'
import { type SignedInUser, signIn } from '../support/dashboard.ts'
import { inputValue } from '../support/html.ts'
import type { TestService } from '../support/service.ts'

export interface Sender extends SignedInUser {
  service: TestService
}

export async function signInSender(service: TestService): Promise<Sender> {
  return { ...(await signIn(service)), service }
}

export interface StoredRun {
  id: string
  variables: Record<string, unknown>
  user_id: string
  api_key_id: string | null
  priority: number
  tags: string | null
  concurrency_group: string | null
  delayed: number
  secrets: Uint8Array | null
}

/** Reads the account's rows of runs. */
export async function readRuns({ accountId, service }: Sender): Promise<StoredRun[]> {
  const all = 'SELECT * FROM runs WHERE account_id = ? ORDER BY id'
  const rows = await service.rows<StoredRun & { variables: string }>(all, accountId)
  return rows.map((row) => ({ ...row, variables: JSON.parse(row.variables) }))
}

export async function readSecrets({ accountId }: Sender, { id, secrets }: StoredRun): Promise<unknown> {
  const encryption = new Encryption(await openKeyRing(readConfig(process.env)))
  return secrets && JSON.parse(encryption.decrypt(secrets, secretsAad(accountId, id)))
}

/** Opens the workflow's form, fills in the fields and submits it. */
export async function send(
  sender: Sender,
  workflowId: string,
  variables: Record<string, string>,
  others: Record<string, string> = {},
) {
  const formPage = await sender.visitor.get(`/workflows/${workflowId}`)
  const fields = Object.entries(variables).map(([name, value]) => [`variable-${name}`, value])
  const form = { key: inputValue(formPage, 'key') ?? '', ...Object.fromEntries(fields), ...others }
  return sender.visitor.post(`/workflows/${workflowId}`, form)
}

export function sendJson(sender: Sender, workflowId: string, variables: string, others: Record<string, string> = {}) {
  return sender.visitor.post(`/workflows/${workflowId}?as=json`, { key: crypto.randomUUID(), variables, ...others })
}
