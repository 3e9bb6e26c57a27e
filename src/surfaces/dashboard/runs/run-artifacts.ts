/** A run's artifacts: the table, image previews, and downloads. */
import type { Artifact } from '../../../domain/runs/artifact.ts'
import type { Run } from '../../../domain/runs/run.ts'
import { readSized } from '../../../domain/sized.ts'
import type { ArtifactMediaType } from '../../../domain/workflows/define-workflow.ts'
import { formatBytes, time } from '../format.ts'
import { type Html, html, nothing, table } from '../html.ts'
import { orNotFound, type StreamHandler } from '../page-handler.ts'

/** Raster images: browsers run no scripts in them. */
const previewedTypes: readonly ArtifactMediaType[] = ['image/png', 'image/jpeg', 'image/webp']

/** The artifacts that the workflow has created. */
export function renderArtifacts({ id, artifacts: all }: Pick<Run, 'id' | 'artifacts'>): Html | '' {
  const artifacts = all.filter(({ kind }) => kind === 'workflow')
  if (artifacts.length === 0) return nothing
  const rows = artifacts.map(({ name, mediaType, sizeBytes, expiresAt }) => [
    html`<a href="${artifactPath(id, name)}" download><strong>${name}</strong></a>`,
    html`<code>${mediaType}</code>`,
    formatBytes(sizeBytes),
    time(expiresAt, 'exact'),
  ])
  return html`<h2>Artifacts</h2>
    ${table(['File', 'Type', { number: 'Size' }, 'Available until'], rows, 'Artifacts')} ${renderPreviews(id, artifacts)}`
}

export function renderPreviews(runId: string, artifacts: readonly Artifact[]): Html | '' {
  const images = artifacts.filter(({ mediaType }) => previewedTypes.includes(mediaType))
  if (images.length === 0) return nothing
  // The query changes when a new artifact of the same name replaces the image.
  const previews = images.map(
    ({ name, createdAt }) => html`<figure>
      <img src="${artifactPath(runId, name)}?${createdAt}" alt="${name}" loading="lazy" decoding="async" />
      <figcaption>${name}</figcaption>
    </figure>`,
  )
  return html`<div class="previews">${previews}</div>`
}

export function artifactPath(runId: string, name: string): string {
  return `/runs/${runId}/artifacts/${name}`
}

/** Always an attachment: artifacts are untrusted and must not become pages of the dashboard's origin. */
export const downloadArtifact: StreamHandler = async (page, { artifacts }, _request, response) => {
  const { account, params, reserve } = page
  const found = orNotFound(await artifacts.find(account.id, params.id ?? '', params.name ?? ''))
  const artifact = orNotFound(await readSized(reserve, found))
  response.attachment(artifact.name).set({
    'Content-Security-Policy': "default-src 'none'; frame-ancestors 'none'; sandbox",
    'X-Content-Type-Options': 'nosniff',
  })
  // Not `response.type`, which would add a charset to text types.
  response.setHeader('Content-Type', artifact.mediaType)
  response.send(Buffer.from(artifact.content))
}
