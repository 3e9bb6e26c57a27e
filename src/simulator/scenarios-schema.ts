/** The format of scenarios.yaml: its types, and the JSON Schema that the docs publish. */

import { artifactBytesMax, artifactNamePattern } from '../domain/runs/artifact.ts'
import { type LogLevel, logLevels, messageLengthMax, nameLengthMax } from '../domain/runs/reported-values.ts'
import { type ArtifactMediaType, artifactMediaTypes } from '../domain/workflows/define-workflow.ts'
import type { JsonSchema } from '../domain/workflows/workflow.ts'

export interface ScenarioFile {
  scenarios: readonly Scenario[]
}

/** How runs of a workflow behave. The first scenario that matches a run decides. */
export interface Scenario {
  workflow: string
  variables?: Record<string, unknown>
  durationSeconds?: number
  actions?: readonly Action[]
  outcome?: OutcomeName
  firstAttempts?: number
  endsInStep?: string
  error?: ScenarioError
  output?: unknown
  evidence?: Evidence
}

export const outcomeNames = ['succeeded', 'failed', 'timedOut', 'workerLost'] as const
export type OutcomeName = (typeof outcomeNames)[number]

export interface ScenarioError {
  name?: string
  message: string
}

/** Has one member. */
export interface Action extends Report {
  step?: string | { name: string; durationSeconds?: number; value?: unknown; actions?: readonly Report[] }
  pause?: number
  sleep?: { name: string; seconds?: number; until?: string }
  ask?: string | Question
  call?: { name: string; workflow: string; variables?: Record<string, unknown>; detached?: boolean }
}

interface Question {
  wait: string
  title?: string
  timeoutSeconds?: number
  show?: Record<string, unknown>
  answers?: readonly Continuation[]
}

/** What follows an answer, instead of the rest of the scenario. Has either `value` or `timedOut`. */
export interface Continuation {
  value?: unknown
  timedOut?: true
  actions?: readonly Action[]
  error?: ScenarioError
  output?: unknown
}

/** Takes no time. Has one member. */
export interface Report {
  log?: string | { message: string; level?: LogLevel }
  progress?: number | { percent: number; message?: string }
  artifact?: { name: string; mediaType?: ArtifactMediaType; text?: string; base64?: string; sizeBytes?: number }
}

export interface Evidence {
  url?: string
  title?: string
  console?: readonly { level: string; text: string }[]
  failedRequests?: readonly { method: string; url: string; status?: number; error?: string }[]
}

/** A year, which is longer than any time limit, and as long as any wait. */
const secondsMax = 366 * 86_400

const seconds = (description: string) => ({ type: 'number', minimum: 0, maximum: secondsMax, description })
const name = (description: string) => ({ type: 'string', minLength: 1, maxLength: nameLengthMax, description })
const text = (description: string) => ({ type: 'string', maxLength: messageLengthMax, description })

/** @param short the type of the short form, which stands for one member. */
function object(
  properties: Record<string, JsonSchema>,
  required: readonly string[],
  description: string,
  short?: JsonSchema,
): JsonSchema {
  const type = short ? [short.type, 'object'] : 'object'
  return { ...short, type, description, additionalProperties: false, required, properties }
}

const message = text('The message.')
const percent = { type: 'number', minimum: 0, maximum: 100, description: 'From 0 to 100.' }

const reports: Record<string, JsonSchema> = {
  log: object(
    { message, level: { enum: logLevels, default: 'info', description: 'How serious it is.' } },
    ['message'],
    'A line of the log: the message, or an object.',
    { type: 'string', maxLength: messageLengthMax },
  ),
  progress: object(
    { percent, message: text('The current activity.') },
    ['percent'],
    'Reports progress: the percent, or an object.',
    { type: 'number', minimum: 0, maximum: 100 },
  ),
  artifact: object(
    {
      name: { type: 'string', pattern: artifactNamePattern.source, description: 'A file name.' },
      mediaType: { enum: artifactMediaTypes, description: "By default as the name's extension says." },
      text: { type: 'string', maxLength: artifactBytesMax, description: 'The content as text.' },
      base64: {
        type: 'string',
        contentEncoding: 'base64',
        maxLength: 14_000_000,
        description: 'The content as base64.',
      },
      sizeBytes: { type: 'integer', minimum: 0, maximum: artifactBytesMax, description: 'Fills this many bytes.' },
    },
    ['name'],
    'Stores a file. Its content is `text`, `base64`, or `sizeBytes` bytes; it is empty without them.',
  ),
}

const error = object({ name: name('`Error` by default.'), message }, ['message'], 'The error of attempts that fail.')

const continuation = object(
  {
    value: { description: 'The answer, or members that it has.' },
    timedOut: { enum: [true], description: 'In place of `value`: no answer came in time.' },
    actions: {
      type: 'array',
      maxItems: 1000,
      description: 'The actions after the answer. By default none.',
      items: { $ref: '#/$defs/action' },
    },
    error: { ...error, description: 'The attempt fails with this error.' },
    output: { description: "The run succeeds with this output, which fits the workflow's schema." },
  },
  [],
  'What follows an answer.',
)

const stepMembers: Record<string, JsonSchema> = {
  name: name('Unique among the steps and waits of the run.'),
  durationSeconds: seconds('How long it takes. Steps without it share the rest of `durationSeconds` of the scenario.'),
  value: { description: 'The result of the step, which a rerun from a later step reuses. `null` by default.' },
  actions: {
    type: 'array',
    maxItems: 1000,
    description: '`log`, `progress` and `artifact`, spread evenly over the step.',
    items: { $ref: '#/$defs/report' },
  },
}

const actions: Record<string, JsonSchema> = {
  ...reports,
  step: object(stepMembers, ['name'], 'Executes a step: its name, or an object.', {
    type: 'string',
    minLength: 1,
    maxLength: nameLengthMax,
  }),
  pause: seconds('Lets seconds pass outside of steps.'),
  sleep: {
    ...object(
      {
        name: name('Unique among the steps and waits of the run.'),
        seconds: seconds('For how long.'),
        until: { type: 'string', format: 'date-time', description: 'Until when, if not for `seconds`.' },
      },
      ['name'],
      'The run waits, and leaves its worker. It has `seconds` or `until`.',
    ),
    minProperties: 2,
    maxProperties: 2,
  },
  ask: object(
    {
      wait: name('A wait that the workflow declares.'),
      title: text('The question. By default the declared title of the wait.'),
      timeoutSeconds: seconds('After which the run continues without an answer. 7 days by default.'),
      show: { type: 'object', description: 'Values for the person who answers.' },
      answers: {
        type: 'array',
        maxItems: 100,
        description:
          'What follows certain answers, instead of the rest of the scenario. The first that matches decides.',
        items: continuation,
      },
    },
    ['wait'],
    'The run waits for an answer: the name of a wait that the workflow declares, or an object.',
    { type: 'string', minLength: 1, maxLength: nameLengthMax },
  ),
  call: object(
    {
      name: name('Unique among the steps and waits of the run.'),
      workflow: { type: 'string', description: 'The id of the called workflow.' },
      variables: { type: 'object', description: 'Variables that fit the schema of the called workflow.' },
      detached: { type: 'boolean', description: 'Whether the called run continues when the caller is cancelled.' },
    },
    ['name', 'workflow'],
    'The run calls a workflow, and waits for its output. If the called run does not succeed, the attempt fails.',
  ),
}

const evidence = object(
  {
    url: { ...text('The address of the page.'), format: 'uri' },
    title: text('The title of the page.'),
    console: {
      type: 'array',
      maxItems: 200,
      description: 'Messages of the console: `level` and `text`.',
      items: object(
        { level: { type: 'string', maxLength: 20, description: 'Such as `error`.' }, text: text('The message.') },
        ['level', 'text'],
        'A message.',
      ),
    },
    failedRequests: {
      type: 'array',
      maxItems: 200,
      description: 'Requests without a successful response: `method`, `url`, and `status` or `error`.',
      items: object(
        {
          method: { type: 'string', maxLength: 20, description: 'Such as `GET`.' },
          url: text('The address.'),
          status: { type: 'integer', minimum: 100, maximum: 599, description: 'Of the response.' },
          error: text('Why there is no response.'),
        },
        ['method', 'url'],
        'A request.',
      ),
    },
  },
  [],
  'The page of the browser, stored as the evidence policy of the workflow says.',
)

/** An action is an object with one member, which names it. */
const actionOf = (properties: Record<string, JsonSchema>, description: string) => ({
  ...object(properties, [], description),
  minProperties: 1,
  maxProperties: 1,
})

const scenario = object(
  {
    workflow: { type: 'string', description: 'The id of the workflow.' },
    variables: {
      type: 'object',
      description: 'Members that the variables of the run have. Without it, the scenario matches every run.',
    },
    durationSeconds: seconds(
      'How long an attempt executes. By default as long as its actions say, or else 2 to 6 seconds by the id of the run.',
    ),
    actions: {
      type: 'array',
      maxItems: 1000,
      description:
        'The actions of an attempt, in their order. By default three steps and, in attempts that succeed, every wait that the workflow declares.',
      items: { $ref: '#/$defs/action' },
    },
    outcome: {
      enum: outcomeNames,
      description: 'How attempts end. By default `failed` if there is an `error`, and else `succeeded`.',
    },
    firstAttempts: {
      type: 'integer',
      minimum: 1,
      maximum: 1000,
      description: 'How many attempts end with `outcome`. Later ones succeed. By default all.',
    },
    endsInStep: name(
      'The step in which attempts end that do not succeed. By default they do all actions, and end in the last one if it is a step.',
    ),
    error,
    output: {
      description:
        "The output of runs that succeed, which fits the workflow's schema. By default made from that schema.",
    },
    evidence,
  },
  ['workflow'],
  'How runs of a workflow behave.',
)

/** JSON Schema, draft 2020-12. */
export const scenariosSchema: JsonSchema = {
  $schema: 'https://json-schema.org/draft/2020-12/schema',
  title: 'Scenarios of the simulator',
  ...object(
    {
      scenarios: {
        type: 'array',
        maxItems: 10_000,
        description: 'The first scenario that matches a run decides about its attempts.',
        items: { $ref: '#/$defs/scenario' },
      },
    },
    ['scenarios'],
    'How simulated runs behave.',
  ),
  $defs: {
    scenario,
    action: actionOf(actions, 'An action of an attempt: an object with one member.'),
    report: actionOf(reports, 'An action of a step: an object with one member.'),
  },
}
