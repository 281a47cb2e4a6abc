import * as commands from '../commands.ts'
import type { Route } from './route.ts'

const session = {
  access: 'session',
  owner: 'own',
  tags: ['console'],
  limits: '10 failures a minute per session and address, 100 per address',
} as const
const ERRORS = ['not_found', 'rate_limited'] as const

/** An operator allows a command to act as them, or denies it. */
export const COMMANDS = {
  'POST /v1/console/commands/look': {
    ...session,
    id: 'lookAtCommandLogin',
    summary: 'Which command asks to act as the caller',
    body: commands.NamedLogin,
    replies: { 200: commands.AskingCommand },
    errors: ERRORS,
  },
  'POST /v1/console/commands/allow': {
    ...session,
    audit: 'session.allowed',
    confirm: true,
    id: 'allowCommandLogin',
    summary: 'Allow a command to act as the caller, for 12 hours at most',
    body: commands.NamedLogin,
    replies: { 200: commands.DecidedLogin },
    errors: ERRORS,
  },
  'POST /v1/console/commands/deny': {
    ...session,
    audit: 'session.denied',
    id: 'denyCommandLogin',
    summary: 'Deny it',
    body: commands.NamedLogin,
    replies: { 200: commands.DecidedLogin },
    errors: ERRORS,
  },
} as const satisfies Record<string, Route>
