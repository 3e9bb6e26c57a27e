/** What an artifact may be: the rules that executors, workers and the store apply. */
import { type ArtifactMediaType, artifactMediaTypes } from '../workflows/define-workflow.ts'

const mediaTypes: Record<string, ArtifactMediaType> = {
  csv: 'text/csv',
  jpeg: 'image/jpeg',
  jpg: 'image/jpeg',
  json: 'application/json',
  pdf: 'application/pdf',
  png: 'image/png',
  txt: 'text/plain',
  webp: 'image/webp',
  zip: 'application/zip',
}

/** By the extension of an artifact's name. */
export function mediaTypeFor(name: string): ArtifactMediaType {
  return mediaTypes[name.slice(name.lastIndexOf('.') + 1).toLowerCase()] ?? 'application/octet-stream'
}

export const artifactBytesMax = 10 * 1024 * 1024
/** The trace of an attempt's browser. */
export const traceBytesMax = 20 * 1024 * 1024
/** Artifacts of one run. */
export const artifactsMax = 20
const artifactBytesOfRunMax = 50 * 1024 * 1024
/** Artifacts that one attempt may write, replaced ones included: each write waits for the disk. */
export const artifactWritesMax = 100
export const tooManyArtifactWrites = `An attempt may write artifacts ${artifactWritesMax} times, including replacements.`

/** The contract's ArtifactName: safe as a file name and in a URL. */
export const artifactNamePattern = /^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$/

/** Names of evidence. A workflow's file of the same name would replace it. */
const evidenceNamePattern = /^attempt-(\d+)-(?:page-\d+\.jpg|browser\.json|trace\.zip)$/

/** @returns whether the file may be evidence of the attempt. */
export function isEvidenceOf(attempt: number, name: string): boolean {
  return evidenceNamePattern.exec(name)?.[1] === `${attempt}`
}

/** Describes the names that evidence of the attempt may have. */
export function evidenceNames(attempt: number): string {
  const prefix = `attempt-${attempt}-`
  return `files named ${prefix}page-1.jpg and the like, ${prefix}browser.json or ${prefix}trace.zip`
}

/** An artifact that cannot be stored; the message says why. */
export class ArtifactError extends Error {}

/** Who made it: the workflow, or the service as evidence of what an attempt's browser did. */
export type ArtifactKind = 'workflow' | 'evidence'

/** Files of one attempt: a summary, a trace and a screenshot of each of the last pages. */
export const evidenceFilesMax = 7
/** A run keeps the evidence of this many attempts, the last ones that have any. */
export const evidenceAttemptsMax = 3

export interface NewArtifact {
  name: string
  mediaType: ArtifactMediaType
  content: Uint8Array
  /** `workflow` by default. */
  kind?: ArtifactKind
}

export interface Artifact {
  name: string
  kind: ArtifactKind
  attempt: number
  mediaType: ArtifactMediaType
  sizeBytes: number
  createdAt: number
  /** When it is purged. */
  expiresAt: number
}

/** @throws {ArtifactError} for an artifact that no run may store. */
export function checkArtifact({ name, mediaType, content, kind }: NewArtifact): void {
  if (!artifactNamePattern.test(name)) {
    throw new ArtifactError(
      `"${name}" is not a valid artifact name. Use up to 100 letters, digits, dots, underscores and hyphens, starting with a letter or digit.`,
    )
  }
  if (kind !== 'evidence' && evidenceNamePattern.test(name)) {
    throw new ArtifactError(`"${name}" is the name of evidence that the service stores. Use another name.`)
  }
  if (!artifactMediaTypes.includes(mediaType)) {
    throw new ArtifactError(
      `"${mediaType}" is not a supported media type. Use one of ${artifactMediaTypes.join(', ')}.`,
    )
  }
  const bytesMax = kind === 'evidence' ? traceBytesMax : artifactBytesMax
  if (content.length > bytesMax) {
    throw new ArtifactError(`${name} has ${content.length} bytes; an artifact may have at most ${bytesMax}.`)
  }
}

/** @param others how many other artifacts the run has; `bytes` includes the new one. @throws {ArtifactError} */
export function checkArtifactsOfRun({ count, bytes }: { count: number; bytes: number }): void {
  if (count >= artifactsMax) throw new ArtifactError(`A run may have at most ${artifactsMax} artifacts.`)
  if (bytes <= artifactBytesOfRunMax) return
  throw new ArtifactError(`The artifacts of a run may have at most ${artifactBytesOfRunMax} bytes in total.`)
}
