/** What an attempt gets of the secrets and settings that its workflow declares, or what of them is missing. */
import type { Encryption } from '../../storage/encryption.ts'
import type { Store } from '../../storage/store.ts'
import type { AccountValuesTable } from '../../storage/tables/account-tables.ts'
import type { Claim } from '../queue/attempts.ts'
import { type DeclaredValues, declaresValues, noValues, type Workflow } from '../workflows/workflow.ts'
import type { Workflows } from '../workflows/workflows.ts'
import { type DeclaredNames, describeVersions, findValues, type ValueKind, valueAad } from './account-values.sql.ts'
import { type SecretStore, SecretStoreError } from './secret-store.ts'

/** A secret or a setting without which a run cannot start. */
export interface MissingValue {
  kind: ValueKind
  name: string
  /** Why, in sentences for callers. */
  detail: string
}

/** Why a run has to wait. */
export interface ValueWait extends MissingValue {
  /** What the workflow declares, and identifies what the account had of it. */
  names: DeclaredNames
  versions: string
  /** Whether the value may come without a notification, so that the run is tried again soon. */
  isRetried: boolean
}

export type ReadValues = { kind: 'values'; values: DeclaredValues } | { kind: 'missing'; wait: ValueWait }

type Found = Pick<AccountValuesTable, 'kind' | 'name' | 'version' | 'updated_at' | 'value'>

export class DeclaredValuesReader {
  readonly #store: Pick<Store, 'read'>
  readonly #encryption: Encryption
  readonly #external: SecretStore | undefined
  /** What the last attempts got, by account and workflow. */
  readonly #recent = new Map<string, Recent>()

  /** @param external has the secrets that the account itself lacks. */
  constructor(store: Pick<Store, 'read'>, encryption: Encryption, external: SecretStore | undefined) {
    this.#store = store
    this.#encryption = encryption
    this.#external = external
  }

  /** The values as they are now, or when the run was claimed. A workflow that declares none costs nothing. */
  async read(
    { accountId, workflowId, valuesVersion }: Pick<Claim, 'accountId' | 'workflowId' | 'valuesVersion'>,
    workflows: Workflows,
  ): Promise<ReadValues> {
    const workflow = workflows.get(workflowId)
    if (!workflow || !declaresValues(workflow)) return { kind: 'values', values: noValues }
    const key = `${accountId} ${workflows.deploymentOf(workflowId)} ${workflowId}`
    const recent = this.#recent.get(key)
    if (recent && recent.version === valuesVersion) return recent.result
    const names = namesOf(workflow)
    const found = await findValues(this.#store.read, accountId, names)
    const { values, missing, isExternal } = await this.#gather(accountId, workflow, workflows, found)
    const [first] = missing
    if (!first) {
      const result = { kind: 'values', values } as const
      if (!isExternal && valuesVersion !== undefined) this.#keep(key, { version: valuesVersion, result })
      return result
    }
    const others = missing.slice(1).map(({ name }) => name)
    const detail = others.length === 0 ? first.detail : `${first.detail} Also missing: ${others.join(', ')}.`
    const isRetried = first.kind === 'secret' && this.#external !== undefined
    return { kind: 'missing', wait: { ...first, detail, names, versions: describeVersions(found), isRetried } }
  }

  /** Reading ten values takes up to a third of the time of a trivial run. */
  #keep(key: string, recent: Recent): void {
    this.#recent.delete(key)
    this.#recent.set(key, recent)
    const [oldest] = this.#recent.keys()
    if (this.#recent.size > recentMax && oldest !== undefined) this.#recent.delete(oldest)
  }

  /** Which of these secrets, which the account lacks, the external store has, and why others cannot be read. */
  async findExternal(accountId: string, names: readonly string[]): Promise<{ names: Set<string>; problem: string }> {
    if (names.length === 0) return { names: new Set(), problem: '' }
    const { values, problem = '', secretName } = (await this.#readExternal(accountId, names)) ?? { values: new Map() }
    if (secretName === undefined) return { names: new Set(values.keys()), problem }
    const others = names.filter((name) => name !== secretName)
    return { ...(await this.findExternal(accountId, others)), problem }
  }

  /** What the account lacks of what these workflows declare. */
  async findMissing(accountId: string, workflows: Workflows): Promise<(MissingValue & { workflowId: string })[]> {
    const declaring = workflows.list().filter(declaresValues)
    if (declaring.length === 0) return []
    const all = this.#store.read.query.selectFrom('account_values').where('account_id', '=', accountId)
    const found = await all.select(['kind', 'name', 'version', 'updated_at', 'value']).execute()
    const missing: (MissingValue & { workflowId: string })[] = []
    for (const workflow of declaring.slice(0, checkedMax)) {
      const gathered = await this.#gather(accountId, workflow, workflows, found)
      missing.push(...gathered.missing.map((each) => ({ ...each, workflowId: workflow.id })))
    }
    return missing.slice(0, missingMax)
  }

  async #gather(accountId: string, workflow: Workflow, workflows: Workflows, found: readonly Found[]) {
    const { secrets = [], settings = {} } = workflow
    const read = (kind: ValueKind, name: string) => {
      const row = found.find((each) => each.kind === kind && each.name === name)
      return row && JSON.parse(this.#encryption.decrypt(row.value, valueAad(accountId, kind, name)))
    }
    const missing: MissingValue[] = []
    const own = new Map(secrets.map((name): [string, string | undefined] => [name, read('secret', name)]))
    const lacking = secrets.filter((name) => own.get(name) === undefined)
    const isExternal = lacking.length > 0
    const external = isExternal ? await this.#readExternal(accountId, lacking) : undefined
    for (const name of lacking) {
      const value = external?.values.get(name)
      if (value !== undefined) own.set(name, value)
      else missing.push({ kind: 'secret', name, detail: external?.problem ?? `The secret ${name} is missing.` })
    }
    const ofSettings: Record<string, unknown> = {}
    for (const name of Object.keys(settings)) {
      const value = read('setting', name)
      const detail =
        value === undefined ? `The setting ${name} is missing.` : describeInvalid(workflow, workflows, name, value)
      if (detail === undefined) ofSettings[name] = value
      else missing.push({ kind: 'setting', name, detail })
    }
    return {
      values: { secrets: Object.fromEntries(own) as Record<string, string>, settings: ofSettings },
      missing,
      isExternal,
    }
  }

  /** A store that does not answer keeps runs waiting; it fails none. */
  async #readExternal(accountId: string, names: readonly string[]) {
    if (!this.#external) return undefined
    try {
      return { values: await this.#external.read(accountId, names), problem: undefined }
    } catch (error) {
      if (!(error instanceof SecretStoreError)) throw error
      return { values: new Map<string, string>(), problem: error.message, secretName: error.secretName }
    }
  }
}

interface Recent {
  /** Of the account's values: they may also be later ones. */
  version: number
  result: Extract<ReadValues, { kind: 'values' }>
}

const recentMax = 100

/** Of one deployment. */
const checkedMax = 1000
const missingMax = 200

function namesOf({ secrets = [], settings = {} }: Workflow): DeclaredNames {
  return { secrets, settings: Object.keys(settings) }
}

/** Why the value of a setting does not fit; the value is not in it. */
function describeInvalid({ id }: Workflow, workflows: Workflows, name: string, value: unknown): string | undefined {
  const [error] = workflows.checkSetting(id, name, value)
  if (!error) return undefined
  const place = error.pointer === '' ? '' : ` at ${error.pointer}`
  return `The setting ${name} does not fit the workflow${place}: ${error.detail}.`
}

/** The workflows that declare each name, sorted. */
export function findDeclaring(workflows: Pick<Workflows, 'list'>, kind: ValueKind): ReadonlyMap<string, string[]> {
  const declaring = new Map<string, string[]>()
  for (const { id, secrets = [], settings = {} } of workflows.list())
    for (const name of kind === 'secret' ? secrets : Object.keys(settings))
      declaring.set(name, [...(declaring.get(name) ?? []), id])
  return declaring
}
