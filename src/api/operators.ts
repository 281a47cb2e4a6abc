import { Type } from 'typebox'
import { MAX_NAME_LENGTH } from '../domain/limits.ts'
import { EXAMPLE_ID, flag, free, nullable, Page, Scope, shownScopes, text, timestamp } from './shared.ts'

/** People: `/v1/admin/operators`, `/v1/admin/sessions`, `/v1/admin/me` and `/v1/console`. */
const EXAMPLE_EMAIL = 'alice@example.com'
const EXAMPLE_LINK = 'https://mayfly.example.com/console#link=mfl_…'
const MAX_EMAIL = 254

const email = Type.String({
  minLength: 3,
  maxLength: MAX_EMAIL,
  description: 'An e-mail address. Case does not count.',
  examples: [EXAMPLE_EMAIL],
})
const shownName = (description: string, example: string) =>
  Type.String({ minLength: 1, maxLength: MAX_NAME_LENGTH, description, examples: [example] })
const adminScopes = Type.Array(Scope, {
  maxItems: 64,
  description: 'Admin scopes that the caller holds.',
  examples: [['admin:*']],
})
const backendScopes = Type.Array(Scope, {
  maxItems: 64,
  description: 'Scopes of backends that they may grant to agents, all held by the caller.',
  examples: [['orders']],
})

export const OperatorRef = Type.Object({
  id: Type.String({
    minLength: 1,
    maxLength: MAX_EMAIL,
    description: 'Id or e-mail address of an operator.',
    examples: [EXAMPLE_EMAIL],
  }),
})
const operatorId = (description: string) => text(description, EXAMPLE_ID.operator)

const SsoIdentity = Type.Object(
  {
    provider: text('Name of the provider by which they last logged in.', 'Example SSO'),
    issuer: text('Its issuer.', 'https://login.example.com'),
    subject: text('Who they are there.', '248289761001'),
  },
  { description: 'Of a person of single sign-on: who they are at their provider.' },
)

export const Operator = Type.Object(
  {
    id: operatorId('Id of the operator.'),
    email: nullable(
      text(
        'Their e-mail address, in lower case; null: their provider of single sign-on has not verified one.',
        EXAMPLE_EMAIL,
      ),
    ),
    name: text('Their name.', 'Alice'),
    sso: nullable(SsoIdentity),
    scopes: shownScopes('Their admin scopes; of a person of single sign-on, those of their last login.'),
    backend_scopes: shownScopes('The scopes of backends that they may grant to agents, likewise.'),
    created_at: timestamp('When they were invited, or created.'),
    created_by: text('Who invited them: an actor, as in the audit.', 'operator:bob@example.com'),
    joined_at: nullable(timestamp('When they first logged in; null: not yet.')),
    last_login: nullable(timestamp('When they last logged in.')),
  },
  { title: 'Operator' },
)

export const InviteOperator = Type.Object(
  {
    email,
    name: Type.Optional(shownName('Their name; default: the address.', 'Alice')),
    scopes: adminScopes,
    backend_scopes: Type.Optional(backendScopes),
  },
  { additionalProperties: false, title: 'InviteOperator' },
)

export const InvitedOperator = Type.Object(
  {
    ...Operator.properties,
    invitation: Type.Object(
      {
        url: text(
          'The link: the person who opens it is logged in as this operator, once. Shown only here.',
          EXAMPLE_LINK,
        ),
        expires_at: timestamp('Until when it works.'),
      },
      { description: 'The invitation.' },
    ),
  },
  { title: 'InvitedOperator' },
)

export const ChangeOperator = Type.Object(
  {
    name: Type.Optional(shownName('Their name.', 'Alice')),
    scopes: Type.Optional(adminScopes),
    backend_scopes: Type.Optional(backendScopes),
  },
  { additionalProperties: false, title: 'ChangeOperator' },
)

export const Passkey = Type.Object(
  {
    id: text('Id of the passkey.', EXAMPLE_ID.passkey),
    name: text('Its name.', 'laptop'),
    backup: Type.String({
      enum: ['none', 'eligible', 'backed_up'],
      description: 'Whether it stays on its device, can be copied to others, or is.',
    }),
    works_here: flag('false: it belongs to another address of this server, and does not work any more.'),
    created_at: timestamp('When it was registered.'),
    last_used: nullable(timestamp('When it was last used.')),
  },
  { title: 'Passkey' },
)

export const PasskeyRef = Type.Object({
  ...OperatorRef.properties,
  passkey: Type.String({
    minLength: 1,
    maxLength: 64,
    description: 'Id of a passkey.',
    examples: [EXAMPLE_ID.passkey],
  }),
})

export const ConsoleFileRef = Type.Object({
  file: Type.String({
    description: 'Name of a file, as the page has it.',
    examples: ['index-1a2b3c4d.js'],
  }),
})

export const SessionQuery = Type.Object(
  {
    operator: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: MAX_EMAIL,
        description: 'Only sessions of this operator: an id or an e-mail address.',
        examples: [EXAMPLE_EMAIL],
      }),
    ),
    ...Page,
  },
  { additionalProperties: false },
)

const loginMethod = Type.String({
  enum: ['link', 'invitation', 'passkey', 'sso', 'browser', 'device'],
  description:
    'How they logged in. `browser` and `device` are commands, allowed in a browser on the same machine, or by a code.',
})

export const Session = Type.Object(
  {
    id: text('Id of the session.', EXAMPLE_ID.session),
    operator_id: operatorId('Whose it is.'),
    email: nullable(text('Their e-mail address.', EXAMPLE_EMAIL)),
    method: loginMethod,
    created_at: timestamp('When it began.'),
    last_used: timestamp('When it was last used, to the minute.'),
    expires_at: timestamp(
      'When it ends at the latest; that of a browser also ends after 30 minutes without use.',
    ),
    ip_address: nullable(text('Where the login came from.', '192.0.2.7')),
    user_agent: nullable(text('The browser or command, as it calls itself.', 'Mozilla/5.0')),
    host: nullable(text('Of a command: the host that it runs on, as it says.', 'laptop')),
    allowed_by: nullable(
      text(
        'Of a command: the session that allowed it, and that ends it when somebody ends that one.',
        EXAMPLE_ID.session,
      ),
    ),
    current: flag('Whether this request belongs to it.'),
  },
  { title: 'Session' },
)

export const SessionRef = Type.Object({
  id: Type.String({
    minLength: 1,
    maxLength: 64,
    description: 'Id of a session.',
    examples: [EXAMPLE_ID.session],
  }),
})

export const EndedSessions = Type.Object(
  { ended: Type.Integer({ description: 'How many sessions ended.', examples: [2] }) },
  { title: 'EndedSessions' },
)

export const Me = Type.Object(
  {
    kind: Type.String({ enum: ['agent', 'operator', 'local'], description: 'What the caller is.' }),
    id: Type.Optional(text('Id of the agent or operator; absent for the local host.', EXAMPLE_ID.operator)),
    name: Type.Optional(text('Its name.', 'Alice')),
    email: Type.Optional(
      text('Of an operator: the e-mail address. Absent where none is verified.', EXAMPLE_EMAIL),
    ),
    sso: Type.Optional(SsoIdentity),
    scopes: shownScopes('What the caller holds; of an operator, the admin scopes.'),
    backend_scopes: Type.Optional(shownScopes('Of an operator: what they may grant to agents.')),
    operations: Type.Array(text('An `operationId` of `/openapi.json`.', 'listAgents'), {
      description: 'The operations whose access rule admits the caller.',
    }),
    session: Type.Optional(
      Type.Object(
        {
          id: text('Id of the session.', EXAMPLE_ID.session),
          method: loginMethod,
          expires_at: timestamp('When it ends at the latest.'),
          may_register_until: nullable(
            timestamp('Until when it may register one passkey without confirmation; null: it may not.'),
          ),
        },
        { description: 'Of an operator: the session of the browser or of the command.' },
      ),
    ),
  },
  { title: 'Me' },
)

export const MakeLink = Type.Object(
  {
    operator: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: MAX_EMAIL,
        description: 'Id or e-mail address of an operator; default: the one whom the first link made.',
        examples: [EXAMPLE_EMAIL],
      }),
    ),
  },
  { additionalProperties: false, title: 'MakeLink' },
)

export const LoginLink = Type.Object(
  {
    url: text('The link. It works once.', EXAMPLE_LINK),
    expires_at: timestamp('Until when it works.'),
    operator: nullable(
      text('Whom it logs in; null: the person who opens it becomes the first operator.', EXAMPLE_EMAIL),
    ),
  },
  { title: 'LoginLink' },
)

const base64url = (description: string, most: number) =>
  Type.String({
    minLength: 1,
    maxLength: most,
    pattern: '^[A-Za-z0-9_-]+$',
    description,
    examples: ['dGhpcyBpcyBhbiBleGFtcGxl'],
  })
const credentialFields = {
  id: base64url('Id of the credential.', 1_400),
  rawId: base64url('The same.', 1_400),
  type: Type.Literal('public-key', { description: 'What it is.' }),
  authenticatorAttachment: Type.Optional(
    nullable(
      Type.String({ maxLength: 32, description: 'Where the authenticator is.', examples: ['platform'] }),
    ),
  ),
  clientExtensionResults: Type.Optional(free('What extensions said; not used.', {})),
}

/** As browsers write `PublicKeyCredential.toJSON()`. */
const Registration = Type.Object(
  {
    ...credentialFields,
    response: Type.Object(
      {
        clientDataJSON: base64url('What the browser says.', 4_096),
        attestationObject: base64url('The new key, as the authenticator says it.', 16_384),
        authenticatorData: Type.Optional(base64url('Not used.', 16_384)),
        transports: Type.Optional(
          Type.Array(
            Type.String({
              maxLength: 32,
              pattern: '^[a-z-]+$',
              description: 'A way to reach the authenticator.',
              examples: ['internal'],
            }),
            { maxItems: 8, description: 'How the authenticator can be reached.' },
          ),
        ),
        publicKeyAlgorithm: Type.Optional(Type.Integer({ description: 'Not used.', examples: [-7] })),
        publicKey: Type.Optional(nullable(base64url('Not used.', 4_096))),
      },
      { additionalProperties: false, description: 'The answer.' },
    ),
  },
  { additionalProperties: false, description: 'The answer of the authenticator, as `toJSON()` writes it.' },
)

const Assertion = Type.Object(
  {
    ...credentialFields,
    response: Type.Object(
      {
        clientDataJSON: base64url('What the browser says.', 4_096),
        authenticatorData: base64url('What the authenticator says.', 4_096),
        signature: base64url('Its signature.', 2_048),
        userHandle: Type.Optional(nullable(base64url('Whose passkey it is.', 256))),
      },
      { additionalProperties: false, description: 'The answer.' },
    ),
  },
  { additionalProperties: false, description: 'The answer of the authenticator, as `toJSON()` writes it.' },
)

export const PasskeyOptions = Type.Object(
  { options: free('For `PublicKeyCredential.parse…OptionsFromJSON()`.', { challenge: 'dGhpcyBpcw' }) },
  { title: 'PasskeyOptions' },
)
export const AddPasskey = Type.Object(
  { name: shownName('How they call it.', 'laptop'), registration: Registration },
  { additionalProperties: false, title: 'AddPasskey' },
)
export const PasskeyLogin = Type.Object(
  { assertion: Assertion },
  { additionalProperties: false, title: 'PasskeyLogin' },
)
export const LinkLogin = Type.Object(
  {
    link: Type.String({
      minLength: 1,
      maxLength: 128,
      description: 'The secret of the link, from its fragment.',
      examples: ['mfl_…'],
    }),
    email: Type.Optional(email),
    name: Type.Optional(shownName('With the link that makes the first operator: their name.', 'Alice')),
  },
  { additionalProperties: false, title: 'LinkLogin' },
)

/** The cookie of the session comes with it. */
export const LoggedIn = Type.Object(
  {
    key: text('What the page sends in `Mayfly-Console` with each request.', 'mfk_…'),
    expires_at: timestamp('When the session ends at the latest.'),
  },
  { title: 'LoggedIn' },
)
export const LinkFollowed = Type.Object(
  {
    key: Type.Optional(text('As for a passkey; absent: a name is needed first.', 'mfk_…')),
    link: Type.Optional(
      text('There is no operator yet: send this with an e-mail address and a name.', 'mfl_…'),
    ),
    expires_at: timestamp('When the session, or this link, ends.'),
  },
  { title: 'LinkFollowed' },
)
