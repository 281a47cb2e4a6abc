import { unsupported } from '../../domain/backend-error.ts'
import { MAX_JWT_BYTES } from '../../domain/limits.ts'
import type { ServedToken, TokenRequest } from '../kind.ts'
import type { Signer } from './keys.ts'
import { type Access, accessOf } from './scopes.ts'

interface Realm {
  readonly issuer: string
  readonly service: string
  readonly signer: Signer
}

interface Settings {
  readonly repositories?: readonly string[]
  readonly leeway: number
}

/**
 * What the credential permits of what was asked, and nothing where that is nothing: the registry refuses then, and says why
 * (https://distribution.github.io/distribution/spec/auth/token/). A login asks for nothing.
 */
export async function tokenFor(
  { repositories, leeway }: Settings,
  { issuer, service, signer }: Realm,
  { credentialId, agent, scopes, asked, now, expiresAt }: TokenRequest,
): Promise<ServedToken> {
  const access = intersection(accessOf(repositories, scopes), asked)
  const iat = Math.floor(now / 1_000)
  // The registry adds the leeway, as to the token of the credential itself.
  const exp = Math.floor(expiresAt / 1_000) - leeway
  const claims = { iss: issuer, sub: agent.id, aud: service, jti: credentialId, iat, nbf: iat, exp, access }
  const token = await signer.sign(claims)
  if (token.length > MAX_JWT_BYTES) throw unsupported('Too many scopes for one token.')
  const granted = access.flatMap(({ name, actions }) => actions.map((action) => `${name}:${action}`))
  return { token, granted }
}

function intersection(held: readonly Access[], asked: readonly string[]): readonly Access[] {
  const wanted = new Map<string, Set<string>>()
  for (const { name, actions } of asked.flatMap((text) => text.split(' ')).map(parse)) {
    const known = wanted.get(name) ?? new Set()
    for (const action of actions) known.add(action)
    wanted.set(name, known)
  }
  return held.flatMap(({ type, name, actions }) => {
    const own = actions.filter((action) => wanted.get(name)?.has(action) || wanted.get(name)?.has('*'))
    return own.length === 0 ? [] : [{ type, name, actions: own }]
  })
}

/** `repository:team/app:pull,push`; a type may have a class, `repository(plugin)`, which no credential has. */
function parse(text: string): { name: string; actions: readonly string[] } {
  const [, name = '', actions = ''] = /^repository:([^:]+(?::\d+\/[^:]+)?):([a-z*,]+)$/.exec(text) ?? []
  return { name, actions: actions.split(',') }
}
