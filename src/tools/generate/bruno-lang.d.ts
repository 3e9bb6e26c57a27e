/** The types of the parts of @usebruno/lang that are used; the package has none. */
declare module '@usebruno/lang' {
  export interface Pair {
    name: string
    value: string
    enabled: boolean
  }

  export interface Request {
    meta: { name: string; type: 'http'; seq: number }
    http: { method: string; url: string; body: 'json' | 'none'; auth: 'bearer' | 'apikey' }
    params: (Pair & { type: 'query' | 'path' })[]
    headers: Pair[]
    auth: { bearer?: { token: string }; apikey?: { key: string; value: string; placement: 'header' } }
    body: { json?: string }
    /** `res`: variables set from the response. */
    vars: { res: (Pair & { local: boolean })[] }
    docs: string
  }

  export interface Folder {
    meta: { name: string; seq: number }
    docs: string
  }

  export interface Environment {
    variables: (Pair & { secret: boolean })[]
  }

  export function jsonToBruV2(request: Request): string
  export function bruToJsonV2(text: string): Request
  export function jsonToCollectionBru(folder: Folder): string
  export function collectionBruToJson(text: string): Folder
  export function envJsonToBruV2(environment: Environment): string
  export function bruToEnvJsonV2(text: string): Environment
}
