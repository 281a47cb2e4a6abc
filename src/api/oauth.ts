import { type TProperties, Type } from 'typebox'
import { accepts, agentId, count, documentedAs, EXAMPLE_ID, flag, sent, shown, text } from './shared.ts'

const SECRET = `cks_${'4f'.repeat(32)}`
const ASSERTION = 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer'
const JWT = 'eyJhbGciOiJFZERTQSJ9.eyJpc3MiOiJhZ2VudF_igKYifQ.c2ln'

/** How a client says who it is, where it does not use `Authorization: Basic` (RFC 6749 §2.3.1, RFC 7523 §2.2). */
const clientFields = {
  client_id: Type.Optional(
    text(
      'Client id of the agent. Not beside `Authorization: Basic`.',
      EXAMPLE_ID.client,
      {},
      accepts({ pattern: '^agent_[0-9a-hjkmnp-tv-z]{26}$' }),
    ),
  ),
  client_secret: Type.Optional(
    text(
      'For client_secret_post: its client secret.',
      SECRET,
      {},
      accepts({ pattern: '^cks_[0-9a-f]{64}$' }),
    ),
  ),
  client_assertion_type: Type.Optional(
    text('For private_key_jwt: how the client authenticates.', ASSERTION, {}, accepts({ enum: [ASSERTION] })),
  ),
  client_assertion: Type.Optional(
    text(
      'For private_key_jwt: signed by the enrolled key, aud = issuer, single-use jti, at most 5 minutes.',
      JWT,
      {},
      accepts({ maxLength: 4096, pattern: '^[A-Za-z0-9_-]+\\.[A-Za-z0-9_-]+\\.[A-Za-z0-9_-]+$' }),
    ),
  ),
}

const { client_id, client_secret, client_assertion_type, client_assertion } = clientFields

/**
 * The form once for each way to authenticate, for the document: in the header, by secret, by assertion. Core answers with
 * the error of the RFC when none of them fits.
 */
function formsOf(title: string, fields: TProperties, required: string[]) {
  const form = (name: string, description: string, own: TProperties) => ({
    title: name,
    description,
    type: 'object',
    required: [
      ...required,
      ...Object.keys(own).filter((key) => (name.endsWith('Assertion') ? key !== 'client_id' : true)),
    ],
    properties: { ...fields, ...own },
    additionalProperties: true,
  })
  return documentedAs({
    title,
    oneOf: [
      form(`${title}ByHeader`, 'With `Authorization: Basic`.', {}),
      form(`${title}BySecret`, 'client_secret_post.', { client_id, client_secret }),
      form(`${title}ByAssertion`, 'private_key_jwt.', { client_id, client_assertion_type, client_assertion }),
    ],
  })
}

/** Unknown parameters of a form are ignored (RFC 6749 §3.2), unlike those of JSON bodies. */
const FORM = { additionalProperties: true }

const tokenFields = {
  grant_type: Type.Optional(
    text('Always client_credentials.', 'client_credentials', {}, accepts({ enum: ['client_credentials'] })),
  ),
  scope: Type.Optional(
    text(
      'Scopes of the agent, separated by spaces. Left out: all of them. `openid` adds an id token and grants nothing.',
      'openid',
      {},
      accepts({
        minLength: 1,
        maxLength: 16_448,
        pattern: '^[A-Za-z0-9._/@+:*-]+( [A-Za-z0-9._/@+:*-]+)*$',
      }),
    ),
  ),
  audience: Type.Optional(
    text(
      'Who the token is for: one of the allowed audiences of the agent or the server. Default: the issuer.',
      'https://mayfly.example.com',
    ),
  ),
  resource: Type.Optional(
    text('RFC 8707: the same as `audience`.', 'https://mayfly.example.com', {}, accepts({ format: 'uri' })),
  ),
}
export const TokenForm = Type.Object(
  { ...tokenFields, ...clientFields },
  { ...FORM, ...formsOf('TokenRequest', tokenFields, ['grant_type']) },
)

export const TokenReply = shown('Token', {
  access_token: text('Send it as `Authorization: Bearer …`.', JWT),
  token_type: Type.Literal('Bearer', { description: 'Always Bearer.' }),
  expires_in: count('How long it lasts, in seconds.', 3600),
  scope: text('The scopes that it has, separated by spaces.', 'orders:read'),
  id_token: Type.Optional(text('If `openid` was requested: an OpenID Connect id token.', JWT)),
})

const presented = {
  token: text('An access token, or a `ckr_` token.', JWT),
  token_type_hint: Type.Optional(text('Ignored: a token tells its own type.', 'access_token')),
}
export const PresentedToken = Type.Object(
  { ...presented, ...clientFields },
  { ...FORM, ...formsOf('PresentedToken', presented, ['token']) },
)

const texts = (description: string, example: string) => Type.Array(text('A value.', example), { description })

export const IntrospectReply = Type.Object(
  {
    active: flag('Whether the token can be used. If not, this is the only member.'),
    token_type: Type.Optional(text('Bearer.', 'Bearer')),
    scope: Type.Optional(text('Its scopes, separated by spaces.', 'orders:read')),
    client_id: Type.Optional(text('Client id of its agent.', EXAMPLE_ID.client)),
    sub: Type.Optional(agentId('Id of its agent.')),
    iss: Type.Optional(text('Who issued it.', 'https://mayfly.example.com')),
    aud: Type.Optional(
      Type.Union([Type.String(), Type.Array(Type.String())], {
        description: 'Who it is for.',
        examples: ['https://mayfly.example.com'],
      }),
    ),
    iat: Type.Optional(count('When it was issued, in seconds since 1970.', 1763720100)),
    exp: Type.Optional(count('When it expires, in seconds since 1970.', 1763723700)),
    jti: Type.Optional(text('Its id.', '06dzt4m8c2q6v1x5k9n3w7p0hb')),
    agent_id: Type.Optional(agentId('Id of its agent.')),
    agent_name: Type.Optional(text('Name of its agent.', 'ci-build')),
  },
  { title: 'Introspection', description: 'RFC 7662 §2.2.' },
)

export const RevokeReply = sent('Revocation', {})

const url = (what: string, path: string) => text(what, `https://mayfly.example.com${path}`)
const methods = (endpoint: string) =>
  texts(`How a client authenticates at the ${endpoint} endpoint.`, 'private_key_jwt')
const algorithms = (endpoint: string) =>
  texts(`How it signs an assertion for the ${endpoint} endpoint.`, 'EdDSA')
export const DiscoveryReply = Type.Object(
  {
    issuer: url('Exactly the `iss` of its tokens.', ''),
    jwks_uri: url('Where its public keys are.', '/.well-known/jwks.json'),
    token_endpoint: Type.Optional(url('Where to get an access token.', '/oauth/token')),
    introspection_endpoint: Type.Optional(url('Where to check a token.', '/oauth/introspect')),
    revocation_endpoint: Type.Optional(url('Where to revoke a token.', '/oauth/revoke')),
    grant_types_supported: Type.Optional(texts('The grants of the token endpoint.', 'client_credentials')),
    response_types_supported: texts(
      'Required by the specification; there is no authorization endpoint.',
      'id_token',
    ),
    subject_types_supported: texts('How subjects are named.', 'public'),
    id_token_signing_alg_values_supported: texts('How its tokens are signed.', 'RS256'),
    scopes_supported: Type.Optional(texts('The scopes that every client may request.', 'openid')),
    claims_supported: texts('The claims of its tokens.', 'sub'),
    token_endpoint_auth_methods_supported: Type.Optional(methods('token')),
    token_endpoint_auth_signing_alg_values_supported: Type.Optional(algorithms('token')),
    introspection_endpoint_auth_methods_supported: Type.Optional(methods('introspection')),
    introspection_endpoint_auth_signing_alg_values_supported: Type.Optional(algorithms('introspection')),
    revocation_endpoint_auth_methods_supported: Type.Optional(methods('revocation')),
    revocation_endpoint_auth_signing_alg_values_supported: Type.Optional(algorithms('revocation')),
  },
  { title: 'Discovery', description: 'RFC 8414 §2, OpenID Connect Discovery 1.0 §3.' },
)

/** Public members only: a private one could not get through. */
const Jwk = Type.Object(
  {
    kty: text('Type of the key.', 'RSA'),
    use: Type.Optional(text('What it is for.', 'sig')),
    alg: Type.Optional(text('How it signs.', 'RS256')),
    kid: Type.Optional(
      text('RFC 7638 thumbprint; tokens name it.', 'kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k'),
    ),
    n: Type.Optional(
      text('RSA: the modulus.', 'u1SU1LfVLPHCozMxH2Mo4lgOEePzNm0tRgeLezV6ffAt0gunVTLw7onLRnrq0_IzW7yWR7Q'),
    ),
    e: Type.Optional(text('RSA: the exponent.', 'AQAB')),
    crv: Type.Optional(text('EC and OKP: the curve.', 'P-256')),
    x: Type.Optional(text('EC and OKP: the x coordinate.', 'axfR8uEsQkf4vOblY6RA8ncDfYEt6zOg9KE5RdiYwpY')),
    y: Type.Optional(text('EC: the y coordinate.', 'T-NC4v4af5uO5-tKfA-eFivOM1drMV7Oy7ZAaDe_UfU')),
    x5c: Type.Optional(texts('A certificate of the key, which some token services insist on.', 'MIIC…')),
  },
  { title: 'PublicJwk', description: 'RFC 7517 §4.' },
)

export const JwksReply = Type.Object(
  { keys: Type.Array(Jwk, { description: 'The public keys, newest first.' }) },
  { title: 'Jwks', description: 'RFC 7517 §5.' },
)
