import { Type } from 'typebox'
import { MAX_COUNTED_OF_AGENT, MAX_PURPOSE_LENGTH } from '../domain/limits.ts'
import { OWN_END_REASONS, type OwnEndReason, RUN_END_REASONS, type RunEndReason } from '../domain/run.ts'
import * as Field from './shared.ts'

/** Runs, as their agent and as administrators see them. */
const RUN_ID = '^run_[0-9a-hjkmnp-tv-z]{26}$'

export const RunId = Type.Object({
  id: Field.text(
    'Id of the run.',
    Field.EXAMPLE_ID.run,
    { minLength: 1, maxLength: 128 },
    Field.accepts({ pattern: RUN_ID }),
  ),
})

/** The id of a run in a body, a form or a query. */
export const runRef = (description: string) =>
  Field.text(description, Field.EXAMPLE_ID.run, { maxLength: 64 }, Field.accepts({ pattern: RUN_ID }))

export const StartRun = Field.sent('RunRequest', {
  purpose: Type.Optional(
    Field.text('What it is for, in your words; the audit has it, too.', 'nightly report', {
      maxLength: MAX_PURPOSE_LENGTH,
    }),
  ),
  heartbeat: Type.Optional(
    Field.duration(
      'How often it says that it lives, 1s to 1h; default: `runs.heartbeat` of the server.',
      '10s',
    ),
  ),
})

export const Run = Field.shown('Run', {
  id: Field.text('Id of the run.', Field.EXAMPLE_ID.run),
  agent: Type.Object(
    { id: Field.agentId('Id of the agent.'), name: Field.text('Its name.', 'ci-build') },
    { description: 'Whose it is.' },
  ),
  purpose: Field.nullable(
    Field.text('What it is for, as the agent says; null: it does not.', 'nightly report'),
  ),
  heartbeat: Field.lasts('How often it says that it lives.', '10s'),
  state: Field.oneOf(['running', 'ended'], 'Whether it lives.'),
  started_at: Field.timestamp('When it began.'),
  last_beat: Field.timestamp('When it last said that it lives, or began.'),
  dead_at: Field.nullable(
    Field.timestamp('When it is dead, with its credentials, unless it says so again; null: it has ended.'),
  ),
  expires_at: Field.nullable(Field.timestamp('When it ends in any case; null: with its agent.')),
  ended_at: Field.nullable(Field.timestamp('When it ended; null: it lives.')),
  reason: Type.Unsafe<RunEndReason | null>({
    type: ['string', 'null'],
    enum: [...RUN_END_REASONS, null],
    description:
      'Why it ended: its agent ended it, its proxy ended it because a placeholder was sent where it does not belong, it missed three heartbeats, an administrator ended it, its agent ended, or it reached `runs.max`; null: it lives.',
  }),
  ended_by: Field.nullable(
    Field.text('Who ended it, as in the audit; null: nobody asked for it.', 'operator:alice@example.com'),
  ),
  ip_address: Field.nullable(Field.text('Address of the client that began it.', '192.0.2.7')),
  user_agent: Field.nullable(Field.text('User agent of that client.', 'mayfly/0.2.0')),
  credentials: Type.Object(
    { live: Field.count(`How many have not ended, counted up to ${MAX_COUNTED_OF_AGENT}.`, 2) },
    { description: 'What was issued for it.' },
  ),
  requests: Type.Optional(
    Type.Object(
      {
        total: Field.count('How many.', 214),
        refused: Field.count('How many of them were refused.', 2),
        redacted: Field.count('How often a secret was masked in a reply.', 0),
      },
      { description: 'What a proxy has told of its requests; absent: nothing.' },
    ),
  ),
})

export const Beaten = Field.shown('Heartbeat', {
  dead_at: Field.timestamp('When the run is dead, with its credentials, unless it says again that it lives.'),
})

const state = Type.Optional(Field.oneOf(['running', 'ended'], 'Only those that live, or that have ended.'))

export const EndQuery = Field.closed({
  reason: Type.Optional(
    Type.Unsafe<OwnEndReason>({
      type: 'string',
      enum: OWN_END_REASONS,
      description:
        'Why: the work is done (the default), or a placeholder was sent where it does not belong, which its proxy refused.',
    }),
  ),
})

export const RunQuery = Field.closed({ state, ...Field.Page })
export const AnyRunQuery = Field.closed({ state, agent: Type.Optional(Field.AgentRef), ...Field.Page })
