import { Type } from 'typebox'
import { MAX_ACTIVITY_POINTS } from '../domain/activity.ts'
import { healthReason } from './admin-backends.ts'
import { auditFilters } from './api-v1.ts'
import * as Field from './shared.ts'

/** Counts of `/v1/admin`: what happened over time, and what is there now. */

const { backend, since, until, action } = auditFilters
export const ActivityQuery = Field.closed({
  since,
  until,
  step: Type.Optional(
    Field.duration(
      `The time between two points: a multiple of a minute that makes at most ${MAX_ACTIVITY_POINTS} points; default: at most 120 points.`,
      '15m',
    ),
  ),
  backend,
  action,
  by: Type.Optional(
    Field.oneOf(
      ['backend', 'action'],
      '`backend`: a series for each backend and action (default). `action`: one for each action, over all backends.',
    ),
  ),
})

const at = (what: string) => Field.timestamp(what)
const Point = (what: string) =>
  Type.Object({
    at: at('Where its time begins.'),
    count: Field.count(what, 42),
  })
const backendName = Field.text('Name of the backend.', 'orders')

export const Activity = Field.shown('Activity', {
  since: at('Where the first point may be: the requested time, rounded down to a multiple of the step.'),
  until: at('Where the last point ends: the requested time, rounded up.'),
  step_seconds: Field.count('The time between two points.', 900),
  counted_until: at('All entries before then are counted; those after it may be missing.'),
  series: Type.Array(
    Type.Object({
      backend: Field.nullable(
        Field.text('Name of the backend; null: entries about no backend, or all with `by=action`.', 'orders'),
      ),
      action: Field.oneOf(Field.ACTION_NAMES, 'What happened.'),
      points: Type.Array(Point('How many entries.'), {
        description: 'Oldest first; a point without entries is absent.',
      }),
    }),
    { description: 'By action and backend; one without entries is absent.' },
  ),
})

const live = Type.Object(
  {
    total: Field.count('How many.', 1_234),
    by_backend: Type.Array(Type.Object({ backend: backendName, count: Field.count('How many.', 1_200) }), {
      description: 'The 100 backends that have the most, the largest first.',
    }),
    by_agent: Type.Array(
      Type.Object({
        agent_id: Field.agentId('The agent that holds them.'),
        agent_name: Field.text('Its name.', 'ci-build'),
        count: Field.count('How many.', 200),
      }),
      { description: 'The 20 agents that hold the most, the largest first.' },
    ),
    history: Type.Array(
      Type.Object({
        at: at('When.'),
        count: Field.count('How many were alive then.', 1_100),
      }),
      {
        description:
          'The last 24 hours, oldest first, computed backwards from `total` and the activity. Empty while older entries are still being counted.',
      },
    ),
  },
  { description: 'Credentials that have neither ended nor expired.' },
)

export const Overview = Field.shown('Overview', {
  at: at('When this was counted: now, or in a large store up to 30 seconds ago.'),
  live,
  waiting: Type.Object(
    {
      count: Field.count('How many, at most 1000 are counted.', 2),
      oldest: Field.nullable(Field.timestamp('When the oldest came in.')),
    },
    { description: 'Requests that wait for a decision.' },
  ),
  unended: Type.Array(
    Type.Object({
      backend: backendName,
      count: Field.count('How many.', 12),
      since: at('When the first of them ended in Mayfly.'),
      last_failure: Type.Optional(
        Type.Object(
          {
            at: at('When it was.'),
            reason: healthReason,
            credential_id: Field.credentialId('Id of the credential.'),
          },
          { description: 'The newest failed try of ending a credential there; absent: none is known.' },
        ),
      ),
    }),
    {
      description:
        'Backends with credentials that have ended and that the upstream may still accept, the longest first.',
    },
  ),
  sweep_lag_seconds: Field.count('How long the oldest due credential has been waiting.', 0),
  store: Type.Object(
    {
      engine: Field.oneOf(['sqlite', 'postgres'], 'The database.'),
      size_bytes: Type.Optional(Field.count('Its size; absent: it cannot be read.', 104_857_600)),
    },
    { description: 'Where everything is kept.' },
  ),
  audit_entries_24h: Field.count(
    'Entries of the audit in the last 24 hours, to the quarter of an hour; fewer while older ones are still being counted.',
    4_321,
  ),
  version: Field.text('Version of the node that answers.', '0.2.0'),
})
