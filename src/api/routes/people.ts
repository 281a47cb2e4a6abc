import { Type } from 'typebox'
import { PageQuery } from '../admin.ts'
import * as people from '../operators.ts'
import { optionalBody } from '../shared.ts'
import { admin, open, type Route } from './route.ts'

const READ = 'admin:operators:read'
const WRITE = 'admin:operators:write'
const session = { access: 'session', owner: 'own' } as const
const LOGINS = '10 failures a minute per link or passkey and address, 100 per address'
const tags = ['admin: operators'] as const
const own = (scope: string) => ({ access: 'reader', scope, owner: 'own_or_admin', tags }) as const
const ofOperators = admin('admin: operators')
const CONFIRMED = ['insufficient_scope', 'conflict'] as const

/** Operators, their sessions and passkeys, and the console. */
export const PEOPLE = {
  'GET /v1/admin/me': {
    access: 'reader',
    id: 'getMe',
    tags,
    summary: 'Who the caller is, and which operations it may call',
    replies: { 200: people.Me },
  },
  'GET /v1/admin/operators': {
    ...ofOperators(READ),
    id: 'listOperators',
    summary: 'All operators, oldest first',
    query: PageQuery,
    replies: { 200: Type.Array(people.Operator) },
  },
  'POST /v1/admin/operators': {
    ...ofOperators(WRITE, 'operator.invited'),
    confirm: true,
    id: 'inviteOperator',
    summary: 'Invite an operator; the link is shown here and never again',
    description: 'Nobody gives more than they hold.',
    body: people.InviteOperator,
    replies: { 200: people.InvitedOperator },
    errors: CONFIRMED,
  },
  'GET /v1/admin/operators/:id': {
    ...own(READ),
    id: 'getOperator',
    summary: 'One operator',
    params: people.OperatorRef,
    replies: { 200: people.Operator },
    errors: ['insufficient_scope', 'operator_not_found'],
  },
  'PATCH /v1/admin/operators/:id': {
    ...ofOperators(WRITE, 'operator.changed'),
    confirm: true,
    id: 'changeOperator',
    summary: 'Change the name of an operator, or replace their scopes, at once on all nodes',
    params: people.OperatorRef,
    body: people.ChangeOperator,
    replies: { 200: people.Operator },
    errors: ['operator_not_found', ...CONFIRMED],
  },
  'DELETE /v1/admin/operators/:id': {
    ...ofOperators(WRITE, 'operator.deleted'),
    confirm: true,
    id: 'deleteOperator',
    summary: 'Remove an operator, with their sessions, passkeys and links',
    params: people.OperatorRef,
    replies: { 204: Type.Null() },
    errors: ['operator_not_found', 'conflict'],
  },
  'POST /v1/admin/operators/:id/invitation': {
    ...ofOperators(WRITE, 'operator.invited'),
    confirm: true,
    id: 'inviteOperatorAgain',
    summary: 'Another invitation for an operator, such as one who lost their passkeys; the one before ends',
    params: people.OperatorRef,
    replies: { 200: people.InvitedOperator },
    errors: ['operator_not_found', ...CONFIRMED],
  },
  'GET /v1/admin/operators/:id/passkeys': {
    ...own(READ),
    id: 'listPasskeys',
    summary: 'The passkeys of an operator, oldest first; at most 20',
    params: people.OperatorRef,
    replies: { 200: Type.Array(people.Passkey) },
    errors: ['insufficient_scope', 'operator_not_found'],
  },
  'DELETE /v1/admin/operators/:id/passkeys/:passkey': {
    ...own(WRITE),
    audit: 'passkey.removed',
    confirm: true,
    id: 'removePasskey',
    summary: 'Remove a passkey, and end the sessions that it started',
    params: people.PasskeyRef,
    replies: { 204: Type.Null() },
    errors: ['insufficient_scope', 'operator_not_found', 'not_found'],
  },
  'DELETE /v1/admin/operators/:id/sessions': {
    ...own(WRITE),
    audit: 'session.ended',
    id: 'endSessionsOfOperator',
    summary: 'End all sessions of an operator',
    params: people.OperatorRef,
    replies: { 200: people.EndedSessions },
    errors: ['insufficient_scope', 'operator_not_found'],
  },
  'GET /v1/admin/sessions': {
    ...own(READ),
    id: 'listSessions',
    summary: 'Sessions of operators, oldest first; without the scope, an operator sees their own',
    query: people.SessionQuery,
    replies: { 200: Type.Array(people.Session) },
    errors: ['insufficient_scope', 'operator_not_found'],
  },
  'DELETE /v1/admin/sessions/:id': {
    ...own(WRITE),
    audit: 'session.ended',
    id: 'endSession',
    summary: 'End a session, at once on all nodes',
    params: people.SessionRef,
    replies: { 204: Type.Null() },
    errors: ['insufficient_scope', 'not_found'],
  },
  'POST /v1/admin/console/links': {
    ...ofOperators(WRITE, 'operator.link_made'),
    id: 'makeLoginLink',
    summary: 'A link that logs an operator in once, within a minute; only over `admin.sock`',
    description:
      'Without `operator`, the link is for the one whom the first such link made; while there is none, it makes one. Any request but one over `admin.sock` without a token is refused.',
    body: optionalBody(people.MakeLink),
    replies: { 200: people.LoginLink },
    errors: ['not_allowed', 'operator_not_found'],
  },
  'POST /v1/console/login/link': {
    ...open(LOGINS, 'session.started'),
    id: 'logInByLink',
    tags: ['console'],
    summary: 'Log in by a link; only for the page of the console',
    body: people.LinkLogin,
    replies: { 200: people.LinkFollowed },
    errors: ['unauthorized', 'not_allowed', 'conflict'],
  },
  'POST /v1/console/login/options': {
    ...open('300 a minute per address'),
    id: 'beginPasskeyLogin',
    tags: ['console'],
    summary: 'What a passkey is to sign for a login',
    replies: { 200: people.PasskeyOptions },
    errors: ['not_allowed'],
  },
  'POST /v1/console/login/passkey': {
    ...open(LOGINS, 'session.started'),
    id: 'logInByPasskey',
    tags: ['console'],
    summary: 'Log in by a passkey; only for the page of the console',
    body: people.PasskeyLogin,
    replies: { 200: people.LoggedIn },
    errors: ['unauthorized', 'not_allowed', 'conflict'],
  },
  'POST /v1/console/logout': {
    ...session,
    audit: 'session.ended',
    id: 'logOut',
    tags: ['console'],
    summary: 'End the session of this request',
    replies: { 204: Type.Null() },
  },
  'POST /v1/console/passkeys/options': {
    ...session,
    id: 'beginRegistration',
    tags: ['console'],
    summary: 'What a new passkey is to answer',
    replies: { 200: people.PasskeyOptions },
    errors: ['conflict', 'not_allowed'],
  },
  'POST /v1/console/passkeys': {
    ...session,
    audit: 'passkey.added',
    confirm: true,
    id: 'addPasskey',
    tags: ['console'],
    summary: 'Register a passkey',
    description:
      'A session that came from a link may register one in its first ten minutes; otherwise a passkey that is there already confirms it.',
    body: people.AddPasskey,
    replies: { 200: people.Passkey },
    errors: ['conflict'],
  },
  'GET /console': {
    ...open('documents a minute per address'),
    below: true,
    id: 'showConsole',
    tags: ['console'],
    summary: 'The console, a page for operators',
    description: 'Every address below it is this page, too, but `/console/assets/`.',
    replies: { 200: Type.String(), 302: Type.Null({ description: 'The address where passkeys work.' }) },
    produces: ['text/html'],
  },
  'GET /console/assets/:file': {
    ...open('3,000 files a minute per address'),
    id: 'getConsoleFile',
    tags: ['console'],
    summary: 'A file of that page, whose name has a hash of its content',
    params: people.ConsoleFileRef,
    replies: { 200: Type.String() },
    produces: ['text/javascript', 'text/css', 'image/svg+xml', 'font/woff2'],
    cacheControl: 'public, max-age=31536000, immutable',
    errors: ['not_found'],
  },
} as const satisfies Record<string, Route>
