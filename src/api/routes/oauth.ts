import * as oauth from '../oauth.ts'
import { open, type Route } from './route.ts'

const FORM = { tags: ['oauth'], consumes: ['application/x-www-form-urlencoded'] } as const
const FAILURES = 'failures a minute per client and address'

/** `/oauth`: with forms and errors of their RFCs. */
export const OAUTH = {
  'POST /oauth/token': {
    ...open(FAILURES, 'token.issued'),
    ...FORM,
    id: 'createToken',
    summary:
      'Get an access token for client credentials or for a token of somebody else, or the token of a command',
    description:
      'A workload whose token an entry of `identities` or `platforms` accepts gets an access token without client authentication; the reason of a refusal is in the audit alone. A command that logs in as an operator gets a `mop_` token for its device code or authorization code, which reaches `/v1/admin/*` and what readers may read for 12 hours at most, and never issues a credential. Where the setting `operator_login` is off, these two grants are unknown.',
    body: oauth.TokenForm,
    replies: { 200: oauth.TokenReply },
  },
  'POST /oauth/device_authorization': {
    ...open('10 logins a minute per address, 1,000 that wait'),
    ...FORM,
    id: 'beginDeviceLogin',
    summary: 'Begin a login of the command, which a person allows by typing a code',
    description: 'RFC 8628. Not found where the setting `operator_login` is off.',
    body: oauth.DeviceForm,
    replies: { 200: oauth.DeviceReply },
  },
  'POST /oauth/introspect': {
    ...open(FAILURES),
    ...FORM,
    id: 'introspectToken',
    summary: 'Check whether a token is active',
    body: oauth.PresentedToken,
    replies: { 200: oauth.IntrospectReply },
  },
  'POST /oauth/revoke': {
    ...open(FAILURES, 'token.revoked'),
    ...FORM,
    id: 'revokeToken',
    summary: 'Revoke a token',
    body: oauth.PresentedToken,
    replies: { 200: oauth.RevokeReply },
  },
} as const satisfies Record<string, Route>
