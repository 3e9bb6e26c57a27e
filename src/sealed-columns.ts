/** Everything that the store keeps encrypted: each folder of the domain describes its own columns. */
import { sealedInBrowserContexts } from './browser-contexts/sealed.ts'
import { sealedInRuns } from './runs/sealed.ts'
import { sealedCheck } from './storage/encryption-check.ts'

/** A column that is not here keeps its values under the old key when the key is rotated. */
export const sealedColumns = [sealedCheck, ...sealedInRuns, ...sealedInBrowserContexts]
