/** A file of a run, as workers inside and outside of the service know it. */
import type { FileVariable } from '../workflows/workflows.ts'

/** A file of a run, and where its variables name it. */
export interface FileOfRun extends FileVariable {
  name: string
  mediaType: string
  sizeBytes: number
}

/** A file in the variables of a run was deleted. */
export class FileMissing extends Error {
  override name = 'FileMissing'

  constructor({ pointer, id }: FileVariable) {
    super(`The file ${id}, which variableData${pointer} names, no longer exists.`)
  }
}
