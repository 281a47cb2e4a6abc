import { Type } from 'typebox'
import * as Field from './shared.ts'

const texts = (description: string, example: string) =>
  Type.Array(Field.text('A value.', example), { description })

const url = (what: string, path: string) => Field.text(what, `https://mayfly.example.com${path}`)
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
    device_authorization_endpoint: Type.Optional(
      url('Where the command begins a login without a browser (RFC 8628).', '/oauth/device_authorization'),
    ),
    authorization_endpoint: Type.Optional(
      url('The page where an operator allows the command on the same machine.', '/console/allow'),
    ),
    code_challenge_methods_supported: Type.Optional(texts('RFC 7636.', 'S256')),
    authorization_response_iss_parameter_supported: Type.Optional(Field.flag('RFC 9207.')),
    grant_types_supported: Type.Optional(texts('The grants of the token endpoint.', 'client_credentials')),
    response_types_supported: texts(
      '`code` for the command, while operators log in by it. Agents have no authorization endpoint; `id_token` is there because the member is required.',
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
    kty: Field.text('Type of the key.', 'RSA'),
    use: Type.Optional(Field.text('What it is for.', 'sig')),
    alg: Type.Optional(Field.text('How it signs.', 'RS256')),
    kid: Type.Optional(
      Field.text('RFC 7638 thumbprint; tokens name it.', 'kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k'),
    ),
    n: Type.Optional(
      Field.text(
        'RSA: the modulus.',
        'u1SU1LfVLPHCozMxH2Mo4lgOEePzNm0tRgeLezV6ffAt0gunVTLw7onLRnrq0_IzW7yWR7Q',
      ),
    ),
    e: Type.Optional(Field.text('RSA: the exponent.', 'AQAB')),
    crv: Type.Optional(Field.text('EC and OKP: the curve.', 'P-256')),
    x: Type.Optional(
      Field.text('EC and OKP: the x coordinate.', 'axfR8uEsQkf4vOblY6RA8ncDfYEt6zOg9KE5RdiYwpY'),
    ),
    y: Type.Optional(Field.text('EC: the y coordinate.', 'T-NC4v4af5uO5-tKfA-eFivOM1drMV7Oy7ZAaDe_UfU')),
    x5c: Type.Optional(texts('A certificate of the key, which some token services insist on.', 'MIIC…')),
  },
  { title: 'PublicJwk', description: 'RFC 7517 §4.' },
)

export const JwksReply = Type.Object(
  { keys: Type.Array(Jwk, { description: 'The public keys, newest first.' }) },
  { title: 'Jwks', description: 'RFC 7517 §5.' },
)
