/** Names, media types and sizes of artifacts, as the contract has them. */
import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import {
  ArtifactError,
  artifactBytesMax,
  artifactNamePattern,
  artifactsMax,
  checkArtifact,
} from '../../../src/domain/runs/artifact.ts'
import { artifactMediaTypes } from '../../../src/domain/workflows/define-workflow.ts'

const { schemas } = JSON.parse(readFileSync('generated/execution.v1/document.json', 'utf8')).components
const good = { name: 'page.pdf', mediaType: 'application/pdf', content: Buffer.of(1) } as const

test('the contract, the service and the types of workflow authors agree', () => {
  expect(schemas.ArtifactMediaType.enum).toEqual(artifactMediaTypes)
  expect(schemas.ArtifactName.pattern).toBe(artifactNamePattern.source)
  expect(schemas.RunArtifact.properties.sizeBytes.maximum).toBe(artifactBytesMax)
  expect(schemas.Run.properties.artifacts.maxItems).toBe(artifactsMax)
})

test.each(['a', '7', 'Page-1_final.v2.pdf', 'x'.repeat(100), 'no.', 'CON'])('%s is a valid name', (name) => {
  expect(() => checkArtifact({ ...good, name })).not.toThrow()
})

test.each(['', '.hidden', '-rf', '_', 'a/b', 'a\\b', '..', 'a b', 'a\n', 'ä', 'a"', 'x'.repeat(101)])(
  '%j is not a valid name',
  (name) => {
    const sentence = `"${name}" is not a valid artifact name. Use up to 100 letters, digits, dots, underscores and hyphens, starting with a letter or digit.`
    expect(() => checkArtifact({ ...good, name })).toThrow(new ArtifactError(sentence))
  },
)

test("a workflow's file cannot have the name of evidence, which it would replace", () => {
  const names = ['attempt-1-trace.zip', 'attempt-12-page-3.jpg', 'attempt-2-browser.json']
  for (const name of names) {
    expect(() => checkArtifact({ ...good, name })).toThrow(
      new ArtifactError(`"${name}" is the name of evidence that the service stores. Use another name.`),
    )
    expect(() => checkArtifact({ ...good, name, kind: 'evidence' })).not.toThrow()
  }
  for (const name of ['attempt-1-report.pdf', 'trace.zip']) expect(() => checkArtifact({ ...good, name })).not.toThrow()
})

test.each(['text/html', 'image/svg+xml', 'application/pdf; a=b', 'Image/PNG', ''])(
  'media types that a browser may execute or misinterpret are rejected: %s',
  (mediaType) => {
    expect(() => checkArtifact({ ...good, mediaType: mediaType as never })).toThrow(ArtifactError)
  },
)
