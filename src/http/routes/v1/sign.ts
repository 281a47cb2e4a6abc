import { Signature, SignBody } from '../../../api/v1.ts'
import { signObject } from '../../../core/agents/sign-object.ts'
import { addRoute, type Http } from '../../routing/route.ts'
import { timestamp } from '../wire.ts'

export function signRoutes(http: Http): void {
  addRoute(http, 'POST /v1/sign', {
    schema: {
      summary: 'Sign a commit or tag with my key, which stays on the server',
      description:
        'A detached OpenPGP signature in the form that `git` expects from `gpg.program`. Refuses data that is no git object, and objects with a foreign author or committer (see `signing_identity`).',
      tags: ['agent'],
      body: SignBody,
      response: { 200: Signature },
    },
    handle: async ({ actor, body }) => {
      const signed = await signObject(http.core, actor, body)
      return {
        signature: signed.signature,
        key_id: signed.keyId,
        fingerprint: signed.fingerprint,
        created_at: timestamp(signed.createdAt),
        email: signed.email,
        name: signed.name,
      }
    },
  })
}
