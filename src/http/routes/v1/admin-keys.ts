import { verifyingKeys } from '../../../core/oauth/publish-keys.ts'
import { rotateKeys } from '../../../core/oauth/rotate-keys.ts'
import { addRoute, type Http } from '../../routing/route.ts'
import { timestamp, timestampOrNull } from '../wire.ts'

/** The one algorithm of the issuer (decisions.md §6.2). */
const ALGORITHM = 'RS256'

/** The keys that sign tokens. */
export function adminKeyRoutes(http: Http): void {
  const { core } = http

  addRoute(http, 'GET /v1/admin/keys/issuer', async () =>
    (await verifyingKeys(core)).map(({ kid, createdAt, retiresAt }) => ({
      key_id: kid,
      algorithm: ALGORITHM,
      created_at: timestamp(createdAt),
      valid_until: timestampOrNull(retiresAt),
    })),
  )

  addRoute(http, 'POST /v1/admin/keys/rotate', async ({ actor, body }) => {
    const rotated = await rotateKeys(core, actor, body ?? {})
    return {
      key_id: rotated.kid,
      previous_valid_until: timestampOrNull(rotated.previousUntil),
    }
  })
}
