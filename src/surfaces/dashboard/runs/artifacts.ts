/** The files that a run has made: which there are, what they look like, and one as a download. */
import type { Request, Response } from 'express'
import type { Artifact, ArtifactMediaType } from '../../../domain/runs/artifacts.ts'
import type { Run } from '../../../domain/runs/run.ts'
import type { Parts } from '../dependencies.ts'
import { byteSize, moment, table } from '../elements.ts'
import { type Html, html, nothing } from '../html.ts'
import { found, type Visit } from '../visit.ts'

/** Browsers draw these without running anything that is in them. */
const drawn: readonly ArtifactMediaType[] = ['image/png', 'image/jpeg', 'image/webp']

export function artifactsPart({ id, artifacts }: Pick<Run, 'id' | 'artifacts'>): Html | '' {
  if (artifacts.length === 0) return nothing
  const rows = artifacts.map((artifact) => {
    const { name, mediaType, sizeBytes, expiresAt } = artifact
    return [
      html`<a href="${artifactPath(id, name)}" download><strong>${name}</strong></a>`,
      html`<code>${mediaType}</code>`,
      byteSize(sizeBytes),
      moment(expiresAt, 'exact'),
    ]
  })
  return html`<h2>Artifacts</h2>
    ${table(['File', 'Type', 'Size', 'Kept until'], rows, 'Artifacts')} ${previews(id, artifacts)}`
}

function previews(runId: string, artifacts: readonly Artifact[]): Html | '' {
  const images = artifacts.filter(({ mediaType }) => drawn.includes(mediaType))
  if (images.length === 0) return nothing
  const shown = images.map(({ name, createdAt }) => {
    const path = artifactPath(runId, name)
    // With its time, because an artifact of the same name takes its place.
    return html`<figure>
      <img src="${path}?${createdAt}" alt="${name}" loading="lazy" decoding="async" />
      <figcaption>${name}</figcaption>
    </figure>`
  })
  return html`<div class="previews">${shown}</div>`
}

export function artifactPath(runId: string, name: string): string {
  return `/runs/${runId}/artifacts/${name}`
}

/**
 * The file as it is, always as a download: what a run has made may come from anywhere, and must not be a page of the
 * dashboard's own. An image is drawn in a page all the same.
 */
export function download({ artifacts }: Parts) {
  return async ({ account, params }: Visit, _request: Request, response: Response): Promise<void> => {
    const artifact = found(await artifacts.read(account.id, params.id ?? '', params.name ?? ''))
    response.attachment(artifact.name).set({
      'Content-Security-Policy': "default-src 'none'; frame-ancestors 'none'; sandbox",
      'X-Content-Type-Options': 'nosniff',
    })
    // Not Express's `type`, which would say of texts that they are UTF-8.
    response.setHeader('Content-Type', artifact.mediaType)
    response.send(Buffer.from(artifact.content))
  }
}
