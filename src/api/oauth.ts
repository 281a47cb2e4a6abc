import { type TProperties, Type } from 'typebox'
import { runRef } from './runs.ts'
import * as Field from './shared.ts'

const SECRET = `cks_${'4f'.repeat(32)}`
const ASSERTION = 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer'
const JWT = 'eyJhbGciOiJFZERTQSJ9.eyJpc3MiOiJhZ2VudF_igKYifQ.c2ln'

/** How a client says who it is, where it does not use `Authorization: Basic` (RFC 6749 §2.3.1, RFC 7523 §2.2). */
const clientFields = {
  client_id: Type.Optional(
    Field.text(
      'Client id of the agent. Not beside `Authorization: Basic`.',
      Field.EXAMPLE_ID.client,
      {},
      Field.accepts({ pattern: '^agent_[0-9a-hjkmnp-tv-z]{26}$' }),
    ),
  ),
  client_secret: Type.Optional(
    Field.text(
      'For client_secret_post: its client secret.',
      SECRET,
      {},
      Field.accepts({ pattern: '^cks_[0-9a-f]{64}$' }),
    ),
  ),
  client_assertion_type: Type.Optional(
    Field.text(
      'For private_key_jwt: how the client authenticates.',
      ASSERTION,
      {},
      Field.accepts({ enum: [ASSERTION] }),
    ),
  ),
  client_assertion: Type.Optional(
    Field.text(
      'For private_key_jwt: signed by the enrolled key, aud = issuer, single-use jti, at most 5 minutes.',
      JWT,
      {},
      Field.accepts({ maxLength: 4096, pattern: '^[A-Za-z0-9_-]+\\.[A-Za-z0-9_-]+\\.[A-Za-z0-9_-]+$' }),
    ),
  ),
}

const { client_id, client_secret, client_assertion_type, client_assertion } = clientFields

/**
 * The form once for each way to authenticate, for the document: in the header, by secret, by assertion. Core answers with
 * the error of the RFC when none of them fits.
 */
function formsOf(title: string, fields: TProperties, required: string[], others: object[] = []) {
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
  return Field.documentedAs({
    title,
    oneOf: [
      form(`${title}ByHeader`, 'With `Authorization: Basic`.', {}),
      form(`${title}BySecret`, 'client_secret_post.', { client_id, client_secret }),
      form(`${title}ByAssertion`, 'private_key_jwt.', { client_id, client_assertion_type, client_assertion }),
      ...others,
    ],
  })
}

/** Unknown parameters of a form are ignored (RFC 6749 §3.2), unlike those of JSON bodies. */
const FORM = { additionalProperties: true }

const DEVICE_GRANT = 'urn:ietf:params:oauth:grant-type:device_code'
const CALLBACK = 'http://127.0.0.1:49152/callback'
const HEX = '4f'.repeat(32)

/** The client of the two grants by which the command logs in as an operator. */
const commandClient = Field.text(
  'Always mayfly-cli, a public client.',
  'mayfly-cli',
  {},
  Field.accepts({ enum: ['mayfly-cli'] }),
)

const commandFields = {
  device_code: Type.Optional(
    Field.text(
      'For the device grant (RFC 8628): from `/oauth/device_authorization`.',
      `mdc_${HEX}`,
      {},
      Field.accepts({ pattern: '^mdc_[0-9a-f]{64}$' }),
    ),
  ),
  code: Type.Optional(
    Field.text(
      'For the authorization code grant (RFC 6749 §4.1): from the redirect.',
      `mac_${HEX}`,
      {},
      Field.accepts({ pattern: '^mac_[0-9a-f]{64}$' }),
    ),
  ),
  redirect_uri: Type.Optional(
    Field.text(
      'With `code`: where the browser was sent, `http://127.0.0.1:PORT/callback` or `http://[::1]:PORT/callback`.',
      CALLBACK,
    ),
  ),
  code_verifier: Type.Optional(
    Field.text(
      'With `code`: what its challenge is the SHA-256 of (RFC 7636).',
      'dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk',
      {},
      Field.accepts({ pattern: '^[A-Za-z0-9._~-]{43,128}$' }),
    ),
  ),
}

const tokenFields = {
  grant_type: Type.Optional(
    Field.text(
      `\`client_credentials\` for an agent; \`${DEVICE_GRANT}\` or \`authorization_code\` for the command that logs in as an operator.`,
      'client_credentials',
      {},
      Field.accepts({ enum: ['client_credentials'] }),
    ),
  ),
  scope: Type.Optional(
    Field.text(
      'Scopes of the agent, separated by spaces. Left out: all of them. `openid` adds an id token and grants nothing.',
      'openid',
      {},
      Field.accepts({
        minLength: 1,
        maxLength: 16_448,
        pattern: '^[A-Za-z0-9._/@+:*-]+( [A-Za-z0-9._/@+:*-]+)*$',
      }),
    ),
  ),
  audience: Type.Optional(
    Field.text(
      'Who the token is for: one of the allowed audiences of the agent or the server. Default: the issuer.',
      'https://mayfly.example.com',
    ),
  ),
  run: Type.Optional(
    runRef('Id of a run: the token ends with it, and what is issued with the token belongs to it.'),
  ),
  resource: Type.Optional(
    Field.text(
      'RFC 8707: the same as `audience`.',
      'https://mayfly.example.com',
      {},
      Field.accepts({ format: 'uri' }),
    ),
  ),
}
/** The two forms of the command, in which everything is required. */
const commandForm = (
  title: string,
  description: string,
  grant: string,
  own: (keyof typeof commandFields)[],
) => ({
  title,
  description,
  type: 'object',
  required: ['grant_type', 'client_id', ...own],
  properties: {
    grant_type: Field.text('The grant.', grant, {}, Field.accepts({ enum: [grant] })),
    client_id: commandClient,
    ...Object.fromEntries(own.map((name) => [name, commandFields[name]])),
  },
  additionalProperties: true,
})

export const TokenForm = Type.Object(
  { ...tokenFields, ...clientFields, ...commandFields },
  {
    ...FORM,
    ...formsOf(
      'TokenRequest',
      tokenFields,
      ['grant_type'],
      [
        commandForm('TokenRequestByDevice', 'Of a command that a person allows by a code.', DEVICE_GRANT, [
          'device_code',
        ]),
        commandForm(
          'TokenRequestByCode',
          'Of a command that a person allowed in a browser.',
          'authorization_code',
          ['code', 'redirect_uri', 'code_verifier'],
        ),
      ],
    ),
  },
)

const deviceFields = {
  client_id: commandClient,
  host: Field.text(
    'The host that the command runs on; the person who allows it sees this.',
    'laptop',
    {},
    Field.accepts({ minLength: 1, maxLength: 255 }),
  ),
}
export const DeviceForm = Type.Object(
  { client_id: Type.Optional(deviceFields.client_id), host: Type.Optional(deviceFields.host) },
  {
    ...FORM,
    ...Field.documentedAs({
      title: 'DeviceAuthorizationRequest',
      description: 'RFC 8628 §3.1.',
      type: 'object',
      required: ['client_id', 'host'],
      properties: deviceFields,
      additionalProperties: true,
    }),
  },
)

export const DeviceReply = Field.shown('DeviceAuthorization', {
  device_code: Field.text('What the command exchanges for its token. A secret.', `mdc_${HEX}`),
  user_code: Field.text('What the person types.', 'BCDF-2345'),
  verification_uri: Field.text('Where they type it.', 'https://mayfly.example.com/console/allow'),
  expires_in: Field.count('How long both codes are good, in seconds.', 600),
  interval: Field.count('How many seconds to wait between two questions for the token.', 5),
})

export const TokenReply = Field.shown('Token', {
  access_token: Field.text('Send it as `Authorization: Bearer …`.', JWT),
  token_type: Type.Literal('Bearer', { description: 'Always Bearer.' }),
  expires_in: Field.count('How long it lasts, in seconds.', 3600),
  scope: Field.text('The scopes that it has, separated by spaces.', 'orders:read'),
  id_token: Type.Optional(Field.text('If `openid` was requested: an OpenID Connect id token.', JWT)),
})

const presented = {
  token: Field.text('An access token, or a `ckr_` token.', JWT),
  token_type_hint: Type.Optional(Field.text('Ignored: a token tells its own type.', 'access_token')),
}
export const PresentedToken = Type.Object(
  { ...presented, ...clientFields },
  { ...FORM, ...formsOf('PresentedToken', presented, ['token']) },
)

const texts = (description: string, example: string) =>
  Type.Array(Field.text('A value.', example), { description })

export const IntrospectReply = Type.Object(
  {
    active: Field.flag('Whether the token can be used. If not, this is the only member.'),
    token_type: Type.Optional(Field.text('Bearer.', 'Bearer')),
    scope: Type.Optional(Field.text('Its scopes, separated by spaces.', 'orders:read')),
    client_id: Type.Optional(Field.text('Client id of its agent.', Field.EXAMPLE_ID.client)),
    sub: Type.Optional(Field.agentId('Id of its agent.')),
    iss: Type.Optional(Field.text('Who issued it.', 'https://mayfly.example.com')),
    aud: Type.Optional(
      Type.Union([Type.String(), Type.Array(Type.String())], {
        description: 'Who it is for.',
        examples: ['https://mayfly.example.com'],
      }),
    ),
    iat: Type.Optional(Field.count('When it was issued, in seconds since 1970.', 1763720100)),
    exp: Type.Optional(Field.count('When it expires, in seconds since 1970.', 1763723700)),
    jti: Type.Optional(Field.text('Its id.', '06dzt4m8c2q6v1x5k9n3w7p0hb')),
    agent_id: Type.Optional(Field.agentId('Id of its agent.')),
    agent_name: Type.Optional(Field.text('Name of its agent.', 'ci-build')),
    run: Type.Optional(Field.text('Id of the run that it is for; absent: none.', Field.EXAMPLE_ID.run)),
  },
  { title: 'Introspection', description: 'RFC 7662 §2.2.' },
)

export const RevokeReply = Field.sent('Revocation', {})

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
