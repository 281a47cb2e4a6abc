import { Type } from 'typebox'
import { Duration, nullable, Timestamp } from '../../../api/shared.ts'
import { rotateKeys } from '../../../core/oauth/rotate-keys.ts'
import { addRoute, type Http } from '../../routing/route.ts'
import { optionalBody } from '../../server/validation.ts'
import { timestamp } from '../wire.ts'

/** The keys that sign tokens. */
export function adminKeyRoutes(http: Http): void {
  const { core } = http

  addRoute(http, 'POST /v1/admin/keys/rotate', {
    schema: {
      summary: 'Sign with a new key; issued tokens end at once, or after the grace period',
      tags: ['admin: keys'],
      body: optionalBody(Type.Object({ grace: Type.Optional(Duration) }, { additionalProperties: false })),
      response: {
        200: Type.Object({
          key_id: Type.String(),
          previous_valid_until: nullable(Timestamp),
        }),
      },
    },
    handle: async ({ actor, body }) => {
      const rotated = await rotateKeys(core, actor, body ?? {})
      return {
        key_id: rotated.kid,
        previous_valid_until: rotated.previousUntil === null ? null : timestamp(rotated.previousUntil),
      }
    },
  })
}
