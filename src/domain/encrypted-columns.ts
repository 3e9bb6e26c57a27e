/** Everything that the store keeps encrypted: each folder of the domain describes its own columns. */

import { encryptionCheckColumn } from '../storage/encrypted-columns.ts'
import { encryptedInBrowserContexts } from './browser-contexts/encrypted-columns.ts'
import { encryptedInRuns } from './runs/run.ts'

/** A column that is not here keeps its values under the old key when the key is rotated. */
export const encryptedColumns = [encryptionCheckColumn, ...encryptedInRuns, ...encryptedInBrowserContexts]
