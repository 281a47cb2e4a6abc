import { CliError, EXIT, usage } from '../frame/failure.ts'
import { flag } from '../frame/options.ts'
import { confirmed } from '../frame/prompt.ts'
import { type Context, defineVerb } from '../frame/verb.ts'
import type { IdentityAuth } from '../identity/auth.ts'
import { dropCached, identityOf } from '../session/credential-cache.ts'
import { forgetOperator } from '../session/keep-login.ts'
import { clientFor } from '../session/open.ts'
import { nameOf } from '../session/profiles.ts'
import { removeLogin } from '../session/remove-login.ts'
import { findStoredLogin, notLoggedIn, readTarget, type Target } from '../session/session.ts'

export const verb = defineVerb({
  description:
    "Removes the logins of the profile, and what was cached with them: an agent's, which leaves the agent on its server unless you use --delete-agent, and an operator's, which ends there, too. A login by an identity ends there as well, with what it issued, and its agent if no other login uses it.",
  options: {
    operator: flag("only the operator's login"),
    deleteAgent: flag('also delete the agent on the server, with all its credentials'),
    yes: flag('do not ask for confirmation'),
  },
  examples: {
    'mayfly logout': 'remove the logins from this machine',
    'mayfly logout --operator': 'stop administering as yourself; the login of the agent stays',
    'mayfly logout --delete-agent': 'also delete the agent',
  },
  json: '{profile (null: a login by an identity alone), server, deleted_agent: boolean, operator_ended and login_ended: boolean (optional; false: not at the server)}',
  exits: [3, 4],
  run: async (context, { operator: isOperators, deleteAgent, yes }) => {
    if (isOperators === true && deleteAgent === true)
      throw usage('--operator and --delete-agent exclude each other.')
    const target = await readTarget(context)
    const { profileName, profile, server } = target
    const kept =
      isOperators === true || target.profileFrom !== 'default' ? undefined : await findKept(context, target)
    if (profile === undefined && kept === undefined) throw noProfile(target)
    if (deleteAgent === true) await endAgent(context, target, kept, yes === true)
    const loginEnded = kept && (await endKept(context, target, kept))
    const hasEnded = profile && (await removeFrom(context, target, isOperators === true))
    const value = {
      profile: profile === undefined ? null : profileName,
      server: server.text,
      deleted_agent: deleteAgent === true,
      operator_ended: profile?.operator === undefined ? undefined : hasEnded,
      login_ended: loginEnded,
    }
    await context.out.report(value, inWords(target, { isOperators, deleteAgent, kept }))
  },
})

async function findKept(context: Context, { server }: Target): Promise<IdentityAuth | undefined> {
  return (await import('../identity/kept.ts')).findKept(context, server.text)
}

async function endKept(context: Context, target: Target, kept: IdentityAuth): Promise<boolean> {
  return (await import('../identity/end.ts')).endIdentity(context, target, kept)
}

const removeFrom = (context: Context, target: Target, isOperators: boolean) =>
  isOperators ? removeOperator(context, target) : removeLogin(context, target)

interface Removed {
  readonly isOperators: boolean | undefined
  readonly deleteAgent: boolean | undefined
  readonly kept: IdentityAuth | undefined
}

function inWords({ server, profile }: Target, { isOperators, deleteAgent, kept }: Removed): string {
  const { login, operator } = profile ?? {}
  const all = [
    login === undefined || isOperators === true
      ? ''
      : operator === undefined
        ? 'the login'
        : 'the login of the agent',
    kept === undefined ? '' : `the login by ${kept.title}`,
    operator === undefined ? '' : `the login of ${nameOf(operator)}`,
  ].filter((one) => one !== '')
  const done = deleteAgent === true ? 'Deleted the agent, and removed' : 'Removed'
  return `${done} ${all.join(' and ')} at ${server.text}.`
}

async function removeOperator(context: Context, target: Target): Promise<boolean> {
  if (target.profile?.operator === undefined)
    throw new CliError('not_logged_in', `There is no operator's login for ${target.server.text}.`, {
      exit: EXIT.unauthenticated,
      hint: 'List the logins with `mayfly profile ls`.',
    })
  const { endOrSay } = await import('../person/end-login.ts')
  const hasEnded = await endOrSay(context, target)
  await forgetOperator(context, target.profileName)
  return hasEnded
}

function noProfile({ server, profileName }: Target): CliError {
  const message = `Profile ${profileName} has no login for ${server.text}.`
  return new CliError('not_logged_in', message, {
    exit: EXIT.unauthenticated,
    hint: 'Choose another profile with --profile.',
  })
}

async function endAgent(
  context: Context,
  target: Target,
  kept: IdentityAuth | undefined,
  isSure: boolean,
): Promise<void> {
  const login = (await findStoredLogin(context, target)) ?? (kept && { auth: kept })
  if (login === undefined) throw notLoggedIn(target)
  const name = target.profile?.agent?.name ?? 'this login'
  const question = `Delete agent ${name} at ${target.server.text}, and revoke all its credentials?`
  await confirmed(context, isSure, question, { otherwise: 'Give --yes.', no: 'Nothing was deleted.' })
  const client = await clientFor(context, target, login.auth)
  await client.deleteSelf()
  // They ended with the agent, and need not be revoked.
  await dropCached(context, (_, identity) => identity === identityOf(target, login.auth))
}
