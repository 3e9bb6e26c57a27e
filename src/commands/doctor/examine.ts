/** Makes every check, whatever becomes of those before it. */
import { type Check, checksOf } from './checks.ts'
import { type Finding, fail, reasonOf, unchecked } from './finding.ts'
import { type Subject, subjectOf } from './subject.ts'

export interface Result extends Finding {
  name: string
}

/** @param now the clock, for tests. */
export async function* examine(environment: NodeJS.ProcessEnv, now?: () => number): AsyncGenerator<Result> {
  const subject = subjectOf(environment, now)
  try {
    for (const check of checksOf(subject.config)) yield { name: check.name, ...(await findingOf(check, subject)) }
  } finally {
    await subject.close()
  }
}

async function findingOf({ variables, find }: Check, subject: Subject): Promise<Finding> {
  const refused = variables.filter((name) => subject.configuration.refused.has(name))
  if (refused.length > 0)
    return unchecked(`${refused.join(' and ')} ${refused.length === 1 ? 'is' : 'are'} refused`, 'the configuration')
  try {
    return await find(subject)
  } catch (error) {
    return fail(`the check could not be made (${reasonOf(error)})`, 'Mend that, and call this again.')
  }
}
