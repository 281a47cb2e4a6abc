import { Type } from 'typebox'

/** How a client says who it is, where it does not use `Authorization: Basic` (RFC 6749 §2.3.1, RFC 7523 §2.2). */
const clientFields = {
  client_id: Type.Optional(Type.String({ description: 'agent_…' })),
  client_secret: Type.Optional(Type.String({ description: 'cks_…, for client_secret_post' })),
  client_assertion_type: Type.Optional(
    Type.String({ description: 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer' }),
  ),
  client_assertion: Type.Optional(
    Type.String({
      description:
        'private_key_jwt: signed by the enrolled key, aud = issuer, single-use jti, at most 5 minutes',
    }),
  ),
}

/** Unknown parameters of a form are ignored (RFC 6749 §3.2), unlike those of JSON bodies. */
const FORM = { additionalProperties: true }

export const TokenForm = Type.Object(
  {
    grant_type: Type.Optional(Type.String({ description: 'client_credentials' })),
    scope: Type.Optional(
      Type.String({
        description:
          'Space-separated. Left out: all scopes of the agent. `openid` adds an id token and grants nothing.',
      }),
    ),
    audience: Type.Optional(Type.String({ description: 'Audience of the token. Default: the issuer.' })),
    resource: Type.Optional(Type.String({ description: 'RFC 8707: the same as audience.' })),
    ...clientFields,
  },
  { ...FORM, title: 'TokenForm' },
)

export const TokenReply = Type.Object(
  {
    access_token: Type.String(),
    token_type: Type.Literal('Bearer'),
    expires_in: Type.Integer({ description: 'seconds' }),
    scope: Type.String(),
    id_token: Type.Optional(Type.String()),
  },
  { title: 'Token' },
)

const PresentedToken = Type.Object(
  {
    token: Type.String(),
    token_type_hint: Type.Optional(Type.String({ description: 'Ignored: a token tells its own type.' })),
    ...clientFields,
  },
  FORM,
)
export const IntrospectForm = PresentedToken
export const RevokeForm = PresentedToken

const texts = Type.Array(Type.String())

export const IntrospectReply = Type.Object(
  {
    active: Type.Boolean(),
    token_type: Type.Optional(Type.String()),
    scope: Type.Optional(Type.String()),
    client_id: Type.Optional(Type.String()),
    sub: Type.Optional(Type.String()),
    iss: Type.Optional(Type.String()),
    aud: Type.Optional(Type.Union([Type.String(), texts])),
    iat: Type.Optional(Type.Integer()),
    exp: Type.Optional(Type.Integer()),
    jti: Type.Optional(Type.String()),
    agent_id: Type.Optional(Type.String()),
    agent_name: Type.Optional(Type.String()),
  },
  { title: 'Introspection', description: 'RFC 7662 §2.2' },
)

export const DiscoveryReply = Type.Object(
  {
    issuer: Type.String(),
    jwks_uri: Type.String(),
    token_endpoint: Type.Optional(Type.String()),
    introspection_endpoint: Type.Optional(Type.String()),
    revocation_endpoint: Type.Optional(Type.String()),
    grant_types_supported: Type.Optional(texts),
    response_types_supported: texts,
    subject_types_supported: texts,
    id_token_signing_alg_values_supported: texts,
    scopes_supported: Type.Optional(texts),
    claims_supported: texts,
    token_endpoint_auth_methods_supported: Type.Optional(texts),
    token_endpoint_auth_signing_alg_values_supported: Type.Optional(texts),
    introspection_endpoint_auth_methods_supported: Type.Optional(texts),
    introspection_endpoint_auth_signing_alg_values_supported: Type.Optional(texts),
    revocation_endpoint_auth_methods_supported: Type.Optional(texts),
    revocation_endpoint_auth_signing_alg_values_supported: Type.Optional(texts),
  },
  { title: 'Discovery', description: 'RFC 8414 §2, OpenID Connect Discovery 1.0 §3' },
)

/** Public members only: a private one could not get through. */
const Jwk = Type.Object({
  kty: Type.String(),
  use: Type.Optional(Type.String()),
  alg: Type.Optional(Type.String()),
  kid: Type.Optional(Type.String()),
  n: Type.Optional(Type.String()),
  e: Type.Optional(Type.String()),
  crv: Type.Optional(Type.String()),
  x: Type.Optional(Type.String()),
  y: Type.Optional(Type.String()),
  x5c: Type.Optional(texts),
})

export const JwksReply = Type.Object({ keys: Type.Array(Jwk) }, { title: 'Jwks', description: 'RFC 7517 §5' })
