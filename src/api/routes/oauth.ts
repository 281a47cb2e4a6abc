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
    summary: 'Get an access token for client credentials',
    body: oauth.TokenForm,
    replies: { 200: oauth.TokenReply },
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
