import { isObject, parseJson } from '../domain/formats/json.ts'
import { type Identity, IdentityRefused, type TokenReview } from '../domain/identity/identity.ts'
import { bearerOf, type Fetch, failureOf, withoutSlash } from './documents.ts'

/**
 * Asks the API of Kubernetes whether the pod and the account of a token still exist (TokenReview of authentication.k8s.io/v1).
 * Throws `IdentityRefused`: `reviewed`, or `keys_unavailable` where the API does not say.
 */
export async function requireReviewed(
  { audience }: Pick<Identity, 'audience'>,
  review: TokenReview,
  { token, subject }: { readonly token: string; readonly subject: string },
  fetch: Fetch,
): Promise<void> {
  const reply = await ask(review, { token, audiences: [audience] }, fetch).catch((error: unknown) => {
    throw new IdentityRefused('keys_unavailable', [], `TokenReview: ${failureOf(error)}`)
  })
  const status = isObject(reply) && isObject(reply['status']) ? reply['status'] : undefined
  if (status === undefined) throw new IdentityRefused('keys_unavailable', [], 'TokenReview: no status')
  const { authenticated, audiences, user } = status
  if (authenticated !== true) throw new IdentityRefused('reviewed')
  // An API that does not name the audience has not compared it.
  if (!Array.isArray(audiences) || !audiences.includes(audience))
    throw new IdentityRefused('reviewed', [], 'the API does not say that it compared the audience')
  if (!isObject(user) || user['username'] !== subject)
    throw new IdentityRefused('reviewed', [], 'the API names another account')
}

async function ask(review: TokenReview, spec: object, fetch: Fetch): Promise<unknown> {
  const reply = await fetch(`${withoutSlash(review.url)}/apis/authentication.k8s.io/v1/tokenreviews`, {
    method: 'POST',
    headers: {
      authorization: await bearerOf(review),
      accept: 'application/json',
      'content-type': 'application/json',
    },
    body: JSON.stringify({ apiVersion: 'authentication.k8s.io/v1', kind: 'TokenReview', spec }),
  })
  if (reply.status !== 201 && reply.status !== 200) throw new Error(`the API answered ${reply.status}`)
  return parseJson(await reply.text())
}
