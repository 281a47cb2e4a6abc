import { signObject } from '../../../core/agents/sign-object.ts'
import { addRoute, type Http } from '../../routing/route.ts'
import { timestamp } from '../wire.ts'

export function signRoutes(http: Http): void {
  addRoute(http, 'POST /v1/sign', async ({ actor, body }) => {
    const signed = await signObject(http.core, actor, body)
    return {
      signature: signed.signature,
      key_id: signed.keyId,
      fingerprint: signed.fingerprint,
      created_at: timestamp(signed.createdAt),
      email: signed.email,
      name: signed.name,
    }
  })
}
