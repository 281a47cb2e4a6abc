import * as sso from '../sso.ts'
import { open, type Route } from './route.ts'

const tags = ['console'] as const
const AWAY = ['backend_error', 'backend_unavailable'] as const

/** Single sign-on. The page of the console does all of it: no route redirects. */
export const SSO = {
  'GET /v1/console/login': {
    ...open('300 a minute per address'),
    id: 'getLoginWays',
    tags,
    summary: 'The providers of single sign-on by which people may log in',
    replies: { 200: sso.LoginWays },
  },
  'POST /v1/console/login/sso': {
    ...open('300 a minute per address'),
    id: 'beginSsoLogin',
    tags,
    summary: 'Begin a login by single sign-on; only for the page of the console',
    description: 'The state of the login is in the cookie `mayfly-sso-state`, sealed, for ten minutes.',
    body: sso.BeginSso,
    replies: { 200: sso.BegunSso },
    errors: ['not_allowed', 'not_found', ...AWAY],
  },
  'POST /v1/console/login/sso/finish': {
    ...open('10 failures a minute per login and address, 100 per address', 'session.started'),
    id: 'finishSsoLogin',
    tags,
    summary: 'Finish a login or a confirmation by single sign-on; only for the page of the console',
    description:
      'Works once for each login that was begun, on any node. A person is known by issuer and subject, never by an e-mail address, and holds what the setting `sso` gives to their groups at this login.',
    body: sso.FinishSso,
    replies: { 200: sso.FinishedSso },
    errors: ['unauthorized', 'not_allowed', 'conflict', ...AWAY],
  },
  'POST /v1/console/confirm/sso': {
    access: 'session',
    owner: 'own',
    id: 'beginSsoConfirmation',
    tags,
    summary: 'Begin a login that confirms one request, for a person of single sign-on',
    description:
      'The provider is asked for a new login whose nonce is the challenge. Once it is finished, the request is repeated with `Mayfly-Confirmation`: base64url of `{"sso":{"challenge":"…"}}`.',
    body: sso.BeginSsoConfirmation,
    replies: { 200: sso.BegunSso },
    errors: ['conflict', ...AWAY],
  },
} as const satisfies Record<string, Route>
