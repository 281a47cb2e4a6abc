import Type, { type Static } from 'typebox'
import { misconfigured, unsupported } from '../../domain/backend-error.ts'
import { isScope } from '../../domain/scope.ts'
import { defineKind, type Opened } from '../define-kind.ts'
import * as Field from '../fields.ts'
import { endingAt, requireShort, wholeSeconds } from '../issued.ts'
import type { Host, Issued, IssueRequest } from '../kind.ts'
import { generateKey, prepareSigner } from './sign.ts'

const audienceText = { minLength: 1, maxLength: 512 }

const example = { audience: 'orders-api' }

const config = Field.configOf(example, {
  audience: Type.Union(
    [Type.String(audienceText), Type.Array(Type.String(audienceText), { minItems: 1, maxItems: 32 })],
    { description: 'The resource server or servers for which the tokens are.' },
  ),
  algorithm: Field.choice(['ES256', 'EdDSA', 'RS256'], 'Signature algorithm: ES256, EdDSA or RS256.'),
  claims: Type.Optional(
    Type.Record(Type.String(), Type.Unknown(), { description: 'Fixed claims of every token.' }),
  ),
  subject: Field.choice(
    ['agent_id', 'agent_name'],
    'Value of `sub`: agent_id, or agent_name (the name of a deleted agent can be reused).',
  ),
  signing_key: Type.Optional(Field.secret('Private key as JWK; generated if absent.', { maxLength: 8192 })),
})
type Config = Static<typeof config>

const params = Field.closed({
  audience: Type.Optional(
    Field.text('One of the configured audiences; all of them if absent.', audienceText),
  ),
})
type Params = Static<typeof params>

/** Claims that Mayfly sets. */
const OURS = new Set(
  'iss sub aud exp iat nbf jti scope client_id agent_id agent_name scopes __proto__'.split(' '),
)
const MAX_CLAIMS_BYTES = 2048

/** A JWT access token (RFC 9068) for a resource server, signed by a key of this backend alone. */
export const jwt = defineKind({
  type: 'jwt',
  title: 'JWT access token',
  config,
  params,
  limits: { minTtlMs: 1_000, why: 'A JWT counts its expiry in whole seconds.' },
  revocation: 'expiry_only',
  upstream: false,
  scopes: {
    valid: isScope,
    forms: [
      { form: 'orders:read', gives: 'read orders, where the resource server names its scopes so' },
      { form: 'orders:*', gives: 'do all that the resource server takes this scope for' },
    ],
    help: 'Any scope that the resource server understands; the claim "scope" holds them as granted.',
  },
  validate: requireOwnClaims,
  async complete(settings) {
    const signingKey = settings.signing_key ?? (await generateKey(settings.algorithm))
    prepareSigner(settings.algorithm, signingKey)
    return { ...settings, signing_key: signingKey }
  },
  open: openJwt,
})

async function openJwt(settings: Config, host: Host): Promise<Opened<Params>> {
  if (settings.signing_key === undefined) {
    throw misconfigured('"signing_key" is missing.')
  }
  const signer = prepareSigner(settings.algorithm, settings.signing_key)
  const startOf = payloadStarts(settings, host.issuer)
  const facts = { kid: signer.publicJwk.kid }
  return {
    async check() {
      await signer.sign('{}')
      return []
    },
    async issue(request): Promise<Issued> {
      const exp = wholeSeconds(request, 'a JWT')
      const secret = await signer.sign(
        startOf(request.params.audience) + varyingClaims(settings, request, exp),
      )
      return { secret: requireShort(secret), facts, ...endingAt(exp * 1000, request.expiresAt) }
    },
    publicKeys: () => [signer.publicJwk],
  }
}

/** Throws `BackendError` (`misconfigured`) for a claim that Mayfly sets, or for too many claims. */
function requireOwnClaims(settings: Config): void {
  const claims = settings.claims ?? {}
  const taken = Object.keys(claims).find((claim) => OURS.has(claim))
  if (taken !== undefined) {
    throw misconfigured(`"claims" contains "${taken}", which Mayfly sets itself.`)
  }
  if (Buffer.byteLength(JSON.stringify(claims)) > MAX_CLAIMS_BYTES) {
    throw misconfigured(`"claims" is longer than ${MAX_CLAIMS_BYTES} bytes.`)
  }
}

/** The constant part of the payload up to its last comma, prepared once per audience. */
function payloadStarts(settings: Config, issuer: string): (asked: string | undefined) => string {
  const startWith = (aud: string | readonly string[]) =>
    `${JSON.stringify({ ...settings.claims, iss: issuer, aud }).slice(0, -1)},`
  const configured = typeof settings.audience === 'string' ? [settings.audience] : settings.audience
  const whole = startWith(configured.length === 1 ? (configured[0] ?? '') : configured)
  const single = new Map(configured.map((audience) => [audience, startWith(audience)]))
  return (asked) => {
    const start = asked === undefined ? whole : single.get(asked)
    if (start === undefined) {
      throw unsupported('The requested audience is not one of this backend.')
    }
    return start
  }
}

function varyingClaims(settings: Config, request: IssueRequest<Params>, exp: number): string {
  const { agent } = request
  const iat = Math.floor(request.issuedAt / 1000)
  const claims = {
    sub: settings.subject === 'agent_id' ? agent.id : agent.name,
    iat,
    nbf: iat,
    exp,
    jti: request.credentialId,
    client_id: agent.id,
    scope: request.scopes.join(' '),
    agent_id: agent.id,
    agent_name: agent.name,
  }
  return JSON.stringify(claims).slice(1)
}
