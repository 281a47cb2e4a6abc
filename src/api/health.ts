import { Type } from 'typebox'
import { healthReason, healthState } from './admin-backends.ts'
import * as Field from './shared.ts'

export const Health = Field.shown('Health', {
  status: Field.text('ok or ready.', 'ok'),
  version: Field.text('Version of the server.', '0.2.0'),
})

export const Readiness = Field.shown('Readiness', {
  ...Health.properties,
  backends: Type.Optional(
    Type.Object(
      {
        up: Field.count('How many are up.', 960),
        unknown: Field.count('Of how many the node knows nothing yet.', 0),
        down: Type.Array(
          Type.Object({
            backend: Field.text('Name of the backend.', 'orders'),
            state: healthState,
            last_success: Field.nullable(Field.timestamp('When the upstream last did what it was asked.')),
            last_failure: Field.nullable(Field.timestamp('When it last failed.')),
            last_failure_reason: healthReason,
          }),
          { description: 'Those that are down, by name.' },
        ),
      },
      { description: 'With `?verbose`: how the backends are, as far as the node knows that answers.' },
    ),
  ),
  unended: Type.Optional(
    Type.Array(
      Type.Object({
        backend: Field.text('Name of the backend.', 'orders'),
        count: Field.count('How many.', 12),
        age_seconds: Field.count('How long ago the first of them ended.', 45),
      }),
      {
        description:
          'With `?verbose`: backends with credentials that have ended and that the upstream may still accept.',
      },
    ),
  ),
})

export const ReadinessQuery = Type.Object({
  verbose: Type.Optional(
    Type.Union([Type.Literal(''), Type.Literal('true')], { description: 'Names backends, too.' }),
  ),
})
