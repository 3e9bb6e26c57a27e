/**
 * Results of steps as they are stored, before encryption: JSON and, in a second line, the secrets of the account that it
 * may contain. A later attempt may have other secrets, but masks these too.
 */
import { createRedactor } from '../workflows/redactor.ts'

export interface StepResult {
  json: string
  secrets: readonly string[]
}

/** @param secrets the secrets of the account that the attempt has, and those in results that it has read. */
export function writeStepResult(json: string, secrets: readonly string[]): string {
  if (secrets.length === 0 || createRedactor({ secrets })(json) === json) return json
  const contained = secrets.filter((secret) => createRedactor({ secret })(json) !== json)
  return formatStepResult({ json, secrets: contained })
}

export function formatStepResult({ json, secrets }: StepResult): string {
  return secrets.length === 0 ? json : `${json}\n${JSON.stringify(secrets)}`
}

/** JSON of `JSON.stringify` has no line break. */
export function readStepResult(stored: string): StepResult {
  const [json = '', secrets] = stored.split('\n')
  return { json, secrets: secrets === undefined ? [] : JSON.parse(secrets) }
}

/** The secrets of results, each once. */
export function secretsOfResults(results: readonly StepResult[]): string[] {
  return [...new Set(results.flatMap(({ secrets }) => secrets))]
}
