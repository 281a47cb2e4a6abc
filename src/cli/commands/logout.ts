import { CliError, EXIT } from '../frame/failure.ts'
import { flag } from '../frame/options.ts'
import { confirmed } from '../frame/prompt.ts'
import { type Context, defineVerb } from '../frame/verb.ts'
import { dropCached, identityOf } from '../session/credential-cache.ts'
import { forgetLogin } from '../session/keep-login.ts'
import { clientFor } from '../session/open.ts'
import { removeLogin } from '../session/remove-login.ts'
import { findStoredLogin, notLoggedIn, readTarget, type Target } from '../session/session.ts'
import { cacheOf } from '../session/token-cache.ts'

export const verb = defineVerb({
  description:
    'Removes the login of the profile and what was cached with it. The agent remains, unless you use --delete-agent.',
  options: {
    deleteAgent: flag('also delete the agent on the server, with all its credentials'),
    yes: flag('do not ask for confirmation'),
  },
  examples: {
    'mayfly logout': 'remove the login from this machine',
    'mayfly logout --delete-agent': 'also delete the agent',
  },
  json: '{profile, server, deleted_agent: boolean}',
  exits: [3, 4],
  run: async (context, { deleteAgent, yes }) => {
    const target = await readTarget(context)
    if (target.profile === undefined) throw noProfile(target)
    if (deleteAgent === true) await endAgent(context, target, yes === true)
    else await removeLogin(context, target)
    const { profileName: profile, server } = target
    await context.out.report(
      { profile, server: server.text, deleted_agent: deleteAgent === true },
      deleteAgent === true
        ? `Deleted the agent, and removed the login at ${server.text}.`
        : `Removed the login at ${server.text}.`,
    )
  },
})

function noProfile({ server, profileName }: Target): CliError {
  const message = `Profile ${profileName} has no login for ${server.text}.`
  return new CliError('not_logged_in', message, {
    exit: EXIT.unauthenticated,
    hint: 'Choose another profile with --profile.',
  })
}

async function endAgent(context: Context, target: Target, isSure: boolean): Promise<void> {
  const login = await findStoredLogin(context, target)
  if (login === undefined) throw notLoggedIn(target)
  const name = target.profile?.agent?.name ?? 'this login'
  const question = `Delete agent ${name} at ${target.server.text}, and revoke all its credentials?`
  await confirmed(context, isSure, question, { otherwise: 'Give --yes.', no: 'Nothing was deleted.' })
  const client = await clientFor(context, target, login.auth)
  await client.deleteSelf()
  await dropCached(context, (_, identity) => identity === identityOf(target, login.auth))
  await cacheOf(context, target.server.text, login.auth)?.save(undefined)
  await forgetLogin(context, target.profileName)
}
