import { type TProperties, Type } from 'typebox'
import { MAX_FOREIGN_JWT_BYTES } from '../domain/limits.ts'
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

const EXCHANGE_GRANT = 'urn:ietf:params:oauth:grant-type:token-exchange'
const BEARER_GRANT = 'urn:ietf:params:oauth:grant-type:jwt-bearer'
const TOKEN_TYPE = 'urn:ietf:params:oauth:token-type:'
const foreign = {
  maxLength: MAX_FOREIGN_JWT_BYTES,
  pattern: '^[A-Za-z0-9_-]+\\.[A-Za-z0-9_-]+\\.[A-Za-z0-9_-]+$',
}

/** The two grants of keyless login. */
const keylessFields = {
  subject_token: Type.Optional(
    Field.text(
      'For token exchange (RFC 8693): the token that somebody else signed for the workload; 16 KiB at most.',
      JWT,
      {},
      Field.accepts(foreign),
    ),
  ),
  subject_token_type: Type.Optional(
    Field.text(
      'With `subject_token`: its type.',
      `${TOKEN_TYPE}jwt`,
      {},
      Field.accepts({ enum: [`${TOKEN_TYPE}jwt`, `${TOKEN_TYPE}id_token`] }),
    ),
  ),
  requested_token_type: Type.Optional(
    Field.text(
      'With `subject_token`: what is wanted, always an access token.',
      `${TOKEN_TYPE}access_token`,
      {},
      Field.accepts({ enum: [`${TOKEN_TYPE}access_token`] }),
    ),
  ),
  actor_token: Type.Optional(Field.text('Not supported: refused.', JWT)),
  assertion: Type.Optional(
    Field.text(
      'For the JWT bearer grant (RFC 7523 §2.1): the same token as `subject_token`.',
      JWT,
      {},
      Field.accepts(foreign),
    ),
  ),
}

const tokenFields = {
  grant_type: Type.Optional(
    Field.text(
      `\`client_credentials\` for an agent with secrets; \`${EXCHANGE_GRANT}\` or \`${BEARER_GRANT}\` for a workload that somebody else vouches for; \`${DEVICE_GRANT}\` or \`authorization_code\` for the command that logs in as an operator.`,
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

/** The forms of a workload, without client authentication. */
const keylessForm = (
  title: string,
  description: string,
  grant: string,
  required: (keyof typeof keylessFields)[],
  more: (keyof typeof keylessFields)[] = [],
) => ({
  title,
  description,
  type: 'object',
  required: ['grant_type', ...required],
  properties: {
    ...tokenFields,
    grant_type: Field.text('The grant.', grant, {}, Field.accepts({ enum: [grant] })),
    ...Object.fromEntries([...required, ...more].map((name) => [name, keylessFields[name]])),
  },
  additionalProperties: true,
})

export const TokenForm = Type.Object(
  { ...tokenFields, ...clientFields, ...keylessFields, ...commandFields },
  {
    ...FORM,
    ...formsOf(
      'TokenRequest',
      tokenFields,
      ['grant_type'],
      [
        keylessForm(
          'TokenRequestByExchange',
          'Of a workload, by token exchange.',
          EXCHANGE_GRANT,
          ['subject_token', 'subject_token_type'],
          ['requested_token_type'],
        ),
        keylessForm('TokenRequestByBearer', 'Of a workload, by a JWT as the grant.', BEARER_GRANT, [
          'assertion',
        ]),
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
  issued_token_type: Type.Optional(
    Field.text('For token exchange: always an access token (RFC 8693 §2.2.1).', `${TOKEN_TYPE}access_token`),
  ),
})

const presented = {
  token: Field.text('An access token, or a `ckr_` token.', JWT),
  token_type_hint: Type.Optional(Field.text('Ignored: a token tells its own type.', 'access_token')),
}
export const PresentedToken = Type.Object(
  { ...presented, ...clientFields },
  { ...FORM, ...formsOf('PresentedToken', presented, ['token']) },
)

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
