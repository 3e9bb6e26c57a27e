/** Names of tools: for an id of a workflow outside of `[A-Za-z0-9_-]{1,64}` as a name, clients drop the whole list. */
import { hash } from 'node:crypto'
import type { Workflows } from '../../domain/workflows/workflows.ts'

const usable = /^[A-Za-z0-9_-]{1,64}$/
const lengthMax = 64

/**
 * The id, or its usable characters and a part of its hash. The part is longer if another workflow has the name as its id.
 */
export function toToolName(id: string, workflows: Pick<Workflows, 'get'>): string {
  if (usable.test(id)) return id
  const digest = hash('sha256', id)
  const nameWith = (digits: number) =>
    `${id.replaceAll(/[^A-Za-z0-9_-]/g, '_').slice(0, lengthMax - 1 - digits)}-${digest.slice(0, digits)}`
  return [8, 16, 32].map(nameWith).find((name) => !workflows.get(name)) ?? digest
}

/** The id of the workflow that a tool stands for; the name itself if there is none. */
export function workflowIdOf(toolName: string, workflows: Pick<Workflows, 'get' | 'list'>): string {
  if (workflows.get(toolName)) return toolName
  return workflows.list().find(({ id }) => toToolName(id, workflows) === toolName)?.id ?? toolName
}
