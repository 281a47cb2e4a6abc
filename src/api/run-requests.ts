import { Type } from 'typebox'
import { MAX_BODY_BYTES } from '../domain/limits.ts'
import { RUN_END_REASONS, type RunEndReason } from '../domain/run.ts'
import { DECISIONS, MAX_LINES } from '../domain/run-request.ts'
import * as Field from './shared.ts'

/** What a proxy tells of the requests of a run, and how it is told which credentials of the run live. */

/** Visible ASCII: it is shown in terminals and pages. */
const PRINTABLE = { pattern: '^[\\x21-\\x7e]+$' }
const line = (description: string, example: string, maxLength: number) =>
  Field.text(description, example, { minLength: 1, maxLength, ...PRINTABLE })
const amount = (description: string, example: number) =>
  Type.Integer({
    minimum: 0,
    maximum: Number.MAX_SAFE_INTEGER,
    description,
    examples: [example],
  })

const decision = Type.Union(
  [
    Type.Literal('injected'),
    Type.Literal('forwarded'),
    Type.Literal('tunnelled'),
    Type.Literal('refused'),
    Type.Literal('misused'),
  ],
  {
    description:
      'What the proxy did: it put a secret in, forwarded it without one, passed it on unread, refused it, or refused it because a placeholder stood where it must not.',
    examples: ['injected'],
  },
)
const protocol = Type.Union(
  [
    Type.Literal('http'),
    Type.Literal('postgres'),
    Type.Literal('mysql'),
    Type.Literal('redis'),
    Type.Literal('tunnel'),
  ],
  { description: 'What was spoken.', examples: ['http'] },
)

const fields = {
  protocol,
  method: Field.nullable(line('The method; null for a database or a tunnel.', 'GET', 32)),
  authority: line('Host, and port where it is not 443.', 'api.github.com', 255),
  path: Field.nullable(
    line(
      'The path that was sent, with ids replaced by `*`; null where no rule matched.',
      '/repos/acme/shop/issues/*',
      512,
    ),
  ),
  status: Field.nullable(
    Type.Integer({
      minimum: 0,
      maximum: 999,
      description: 'The status of the reply; null: none was received.',
      examples: [200],
    }),
  ),
  bytes_sent: amount('Bytes of the body, or of the connection, to the upstream.', 0),
  bytes_received: amount('Bytes from the upstream.', 5120),
  duration_ms: amount('How long it took, in ms.', 83),
  decision,
  reason: Field.nullable(line('Why it was refused, for programs; null: it was not.', 'path_not_allowed', 64)),
  backend: Field.nullable(line('Name of the backend; null: of none.', 'github', 128)),
  credential_id: Field.nullable(
    line('Id of the credential whose secret was put in.', Field.EXAMPLE_ID.credential, 64),
  ),
  placeholder: Field.nullable(line('Name of the placeholder; never its value.', 'github.token', 200)),
  redacted: amount('How often a secret was masked in the reply.', 0),
}

export const RequestLine = Field.sent('RequestLine', {
  at: Field.text('When it began, by the clock of the proxy.', '2026-11-21T10:15:00.000Z', {
    format: 'date-time',
    maxLength: 64,
  }),
  ...fields,
})

const BATCH_ID = '^[0-9a-hjkmnp-tv-z]{26}$'
export const RequestBatch = Field.sent('RequestBatch', {
  batch: Field.text(
    'Made for this batch by whoever sends it: repeating the batch records it once.',
    '06dzw5k9q2v6x1m8t3c7n4p0hb',
    { pattern: BATCH_ID, maxLength: 26 },
  ),
  requests: Type.Array(RequestLine, {
    minItems: 1,
    maxItems: MAX_LINES,
    description: `In the order in which they ended; the whole body is at most ${MAX_BODY_BYTES / 1024} KiB.`,
  }),
})

export const RecordedRequest = Field.shown('RecordedRequest', {
  at: Field.timestamp('When it began, by the clock of the proxy.'),
  ...fields,
})

export const RequestQuery = Field.closed({
  decision: Type.Optional(
    Field.oneOf(
      [...DECISIONS],
      'Only those with this decision; `refused` shows those that were misused, too.',
    ),
  ),
  ...Field.Page,
})

const readAt = Field.timestamp(
  'As of when the last `state` is whole: a credential that was created more than 5 seconds before, and that it does not name, has ended.',
)

/** The data of an event `alive`. */
export const RunAlive = Field.shown('RunAlive', { at: readAt })

/** The data of an event `state`. */
export const RunState = Field.shown('RunState', {
  run: Type.Object(
    {
      state: Type.Union([Type.Literal('running'), Type.Literal('ended')], {
        description: 'Whether it lives.',
        examples: ['running'],
      }),
      reason: Type.Unsafe<RunEndReason | null>({
        type: ['string', 'null'],
        enum: [...RUN_END_REASONS, null],
        description: 'Why it ended; null: it lives.',
      }),
      dead_at: Field.nullable(
        Field.timestamp('When it is dead unless it says again that it lives; null: it has ended.'),
      ),
    },
    { description: 'The run.' },
  ),
  at: readAt,
  credentials: Type.Array(Field.credentialId('Id of a credential.'), {
    description: 'All credentials of the run that live.',
  }),
})
