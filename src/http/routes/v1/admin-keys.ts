import { RotatedKeys, RotateKeys } from '../../../api/admin.ts'
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
      body: optionalBody(RotateKeys),
      response: { 200: RotatedKeys },
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
