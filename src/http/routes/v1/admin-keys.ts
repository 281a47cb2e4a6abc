import { rotateKeys } from '../../../core/oauth/rotate-keys.ts'
import { addRoute, type Http } from '../../routing/route.ts'
import { timestampOrNull } from '../wire.ts'

/** The keys that sign tokens. */
export function adminKeyRoutes(http: Http): void {
  const { core } = http

  addRoute(http, 'POST /v1/admin/keys/rotate', async ({ actor, body }) => {
    const rotated = await rotateKeys(core, actor, body ?? {})
    return {
      key_id: rotated.kid,
      previous_valid_until: timestampOrNull(rotated.previousUntil),
    }
  })
}
