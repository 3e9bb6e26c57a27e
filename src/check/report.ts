/** Formats reports: a table for people, JUnit and SARIF for continuous integration, and JSON. */
import { type Finding, type Report, type Result, situations } from './check-consumer.ts'

export const reporters = { text: toText, junit: toJunit, sarif: toSarif, json: toJson }
export type ReporterName = keyof typeof reporters

const outcomes = { passed: 'passed', finding: 'finding', notApplicable: 'not applicable' }

function toText({ seed, results, findings }: Report): string {
  const width = Math.max(...results.map(({ situation }) => situation.length))
  const rows = results.map(({ situation, outcome }) => `${situation.padEnd(width)}  ${outcomes[outcome]}`)
  const count = (outcome: Result['outcome']) => results.filter((result) => result.outcome === outcome).length
  const summary = `${results.length} situations: ${count('passed')} passed, ${count('finding')} with findings, ${count('notApplicable')} not applicable. Seed: ${seed}`
  return [...rows, '', ...findings.flatMap((finding) => [toParagraph(finding), '']), summary].join('\n')
}

function toParagraph({ situation, service, program, rule, docs, source, seed }: Finding): string {
  return [
    `${situation}`,
    `  The service: ${service}.`,
    `  The program: ${program}`,
    `  The rule:    ${rule}`,
    `  Docs:        ${docs} (${source})`,
    `  Again:       --only ${situation} --seed ${seed}`,
  ].join('\n')
}

function toJson(report: Report): string {
  return JSON.stringify(report, undefined, 2)
}

function toJunit({ results, findings }: Report): string {
  const skipped = results.filter(({ outcome }) => outcome === 'notApplicable').length
  const failures = results.filter(({ outcome }) => outcome === 'finding').length
  const cases = results.map(({ situation, group, outcome, findings: own }) => {
    const content =
      outcome === 'notApplicable'
        ? '<skipped/>'
        : own.length === 0
          ? ''
          : `<failure message="${escaped(own.map(({ program }) => program).join(' '))}">${escaped(own.map(toParagraph).join('\n'))}</failure>`
    return `    <testcase classname="check-consumer.${group}" name="${situation}">${content}</testcase>`
  })
  return [
    '<?xml version="1.0" encoding="UTF-8"?>',
    `<testsuites tests="${results.length}" failures="${failures}">`,
    `  <testsuite name="check-consumer" tests="${results.length}" failures="${failures}" skipped="${skipped}" errors="0">`,
    ...cases,
    '  </testsuite>',
    '</testsuites>',
    `<!-- ${findings.length} findings -->`,
  ].join('\n')
}

function escaped(text: string): string {
  const entities: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' }
  return text.replaceAll(/[&<>"]/g, (character) => entities[character] as string)
}

function toSarif({ results, findings }: Report): string {
  const checked = situations.filter(({ id }) => results.some(({ situation }) => situation === id))
  const rules = checked.map(({ id, title, rule, docs, source }) => ({
    id,
    shortDescription: { text: `${title}.` },
    help: { text: `${rule} See docs/${docs} (${source}).` },
  }))
  const found = findings.map(({ situation, service, program, rule, docs, seed }) => ({
    ruleId: situation,
    level: 'error',
    message: { text: `${service}. ${program} ${rule}` },
    // A program is seen from outside: the finding is at the section of the docs.
    locations: [{ physicalLocation: { artifactLocation: { uri: docs } } }],
    partialFingerprints: { 'situation/v1': situation },
    properties: { seed },
  }))
  const tool = { driver: { name: 'execution-service check-consumer', rules } }
  const schema = 'https://json.schemastore.org/sarif-2.1.0.json'
  return JSON.stringify({ $schema: schema, version: '2.1.0', runs: [{ tool, results: found }] }, undefined, 2)
}
