import { type Static, type TSchema, Type } from 'typebox'
import { ACTIONS } from '../domain/actions.ts'
import { MAX_METADATA_KEYS, MAX_NAME_LENGTH } from '../domain/limits.ts'
import { PROBLEMS } from '../domain/problems.ts'

/** Pieces that both groups use. Wire names are snake_case. */
export const Timestamp = Type.String({ format: 'date-time', description: 'RFC 3339, UTC, milliseconds' })
export const Duration = Type.String({
  maxLength: 256,
  description: 'such as 45s, 10m, 1h30m',
  examples: ['10m'],
})
export const Scope = Type.String({
  maxLength: 256,
  description: 'backend:resource:permission',
  examples: ['reports:read'],
})
export const Scopes = Type.Array(Scope, { maxItems: 64 })
export const Warnings = Type.Optional(
  Type.Array(Type.String(), {
    description: 'sentences about scopes that name no backend or can never be given; absent: none',
  }),
)
export const Name = Type.String({ minLength: 1, maxLength: MAX_NAME_LENGTH })
export const Metadata = Type.Record(Type.String(), Type.Unknown(), {
  maxProperties: MAX_METADATA_KEYS,
  description: 'recorded in the audit, at most 8 KiB',
})

export const ACTION_NAMES: string[] = [...ACTIONS]

/** One type or null, written as JSON Schema's list of types: a union would be validated on every reply. */
export const nullable = <T extends TSchema & { type: string }>(schema: T) =>
  Type.Unsafe<Static<T> | null>({ ...schema, type: [schema.type, 'null'] })

export type ErrorCode = keyof typeof PROBLEMS

export const ErrorBody = Type.Object(
  {
    error: Type.Object({
      code: Type.String({ enum: Object.keys(PROBLEMS) }),
      message: Type.String(),
      request_id: Type.String(),
    }),
  },
  { title: 'Error', description: 'Every error outside /oauth/' },
)

export const OAuthErrorBody = Type.Object(
  { error: Type.String(), error_description: Type.Optional(Type.String()) },
  { title: 'OAuthError', description: 'RFC 6749 §5.2' },
)

/** Paging of every listing (RFC 8288: the next page is in `Link`). */
export const Page = {
  limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 1000, description: 'page size; default 100' })),
  cursor: Type.Optional(
    Type.String({ minLength: 1, maxLength: 128, description: 'from the Link header of the previous page' }),
  ),
}
