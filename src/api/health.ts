import { Type } from 'typebox'
import * as Field from './shared.ts'

export const Health = Field.shown('Health', {
  status: Field.text('ok or ready.', 'ok'),
  version: Field.text('Version of the server.', '0.2.0'),
})

export const Readiness = Field.shown('Readiness', {
  ...Health.properties,
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
