import { CliError } from '../frame/failure.ts'
import { showRows } from '../frame/list.ts'
import { yesTo } from '../frame/options.ts'
import { listing } from '../frame/output.ts'
import { confirmed } from '../frame/prompt.ts'
import { relative } from '../frame/times.ts'
import { defineVerb } from '../frame/verb.ts'
import { useProfile } from '../session/keep-login.ts'
import { DEFAULT_PROFILE, nameOf, type Profile, type Profiles, readProfiles } from '../session/profiles.ts'
import { removeLogin } from '../session/remove-login.ts'
import { LOGIN_WORDS, readTarget } from '../session/session.ts'

const PROFILE = { name: '<name>', description: 'the profile', values: 'profiles' } as const

/** A profile, and its name. Nothing in it is secret. */
interface Named extends Profile {
  readonly name: string
  /** Commands use it if none is named. */
  readonly current: boolean
}

export const list = defineVerb({
  description:
    'Lists the profiles: the logins on this machine, of agents and of operators. It asks no server.',
  examples: { 'mayfly profile ls': 'which servers you are logged in to, and as whom' },
  json: 'array of {name, current, server, login, secret_in, agent: {id, name} (optional), issuer (optional), operator: {id, email, name, method, expires, …} (optional), …}',
  run: async (context) => {
    const known = await readProfiles(context)
    const rows = Object.entries(known.profiles).map(([name, profile]) => named(known, name, profile))
    await showRows(context, rows, {
      things: 'profiles',
      none: 'No profiles yet. `mayfly login` and `mayfly enroll` make one.',
      heading: ['', 'PROFILE', 'SERVER', 'AGENT', 'LOGIN', 'OPERATOR'],
      cells: (row) => [
        row.current ? '*' : '',
        row.name,
        row.server,
        row.agent?.name ?? '',
        inWords(row) ?? '',
        operatorInWords(row, context.now()) ?? '',
      ],
    })
  },
})

export const show = defineVerb({
  description: 'Shows a profile; without a name, the one that commands use here. It asks no server.',
  arguments: [{ ...PROFILE, name: '[name]' }],
  examples: { 'mayfly profile show': 'the one that is used here' },
  json: '{name, current, server, login, secret_in, agent: {id, name} (optional), issuer (optional), operator: {id, email, name, method, expires, …} (optional), …}',
  run: async (context, _options, name) => {
    const known = await readProfiles(context)
    const wanted = find(known, name ?? (await readTarget(context)).profileName)
    await context.out.show(wanted, () =>
      listing({
        Profile: wanted.current ? `${wanted.name} (current)` : wanted.name,
        Server: wanted.server,
        Issuer: wanted.issuer,
        Agent: wanted.agent === undefined ? undefined : `${wanted.agent.name} (${wanted.agent.id})`,
        Login: inWords(wanted),
        Operator: operatorInWords(wanted, context.now()),
        'Kept in': wanted.operator && PLACES[wanted.operator.secret_in],
        'Client id': wanted.client_id,
        Authorities: wanted.ca_file,
      }),
    )
  },
})

export const use = defineVerb({
  description: 'Makes a profile the one that commands use if you name none.',
  arguments: [PROFILE],
  examples: { 'mayfly profile use staging': 'from now on, in every directory' },
  json: '{"current": "NAME"}',
  run: async (context, _options, name) => {
    if (!(await useProfile(context, name))) throw unknown(name)
    await context.out.report({ current: name }, `Commands use the profile ${name} now.`)
    const { profileName, variable } = await readTarget({ ...context, globals: {} })
    if (variable?.isUsed === true)
      context.out.note(`${variable.name} is set and takes precedence over it. Unset it.`)
    else if (profileName !== name)
      context.out.note('MAYFLY_PROFILE or MAYFLY_SERVER is set and takes precedence over it. Unset it.')
  },
})

export const remove = defineVerb({
  description:
    'Removes a profile: its logins, and what was cached with them, as `mayfly logout` does. The agent remains on its server.',
  arguments: [PROFILE],
  options: yesTo('do not ask for confirmation'),
  examples: { 'mayfly profile rm staging': 'ask, then remove it' },
  json: '{"removed": "NAME"}',
  run: async (context, options, name) => {
    const { server } = find(await readProfiles(context), name)
    await confirmed(context, options.yes, `Remove the login at ${server} from this machine?`, {
      otherwise: 'Use --yes to remove it without a question.',
      no: 'Nothing was removed.',
    })
    // By its name alone: a server in the environment may be another one.
    const target = await readTarget({
      ...context,
      env: { ...context.env, MAYFLY_SERVER: undefined },
      globals: { ...context.globals, profile: name, server: undefined },
    })
    await removeLogin(context, target)
    await context.out.report({ removed: name }, `Removed the profile ${name}.`)
  },
})

function named(known: Profiles, name: string, profile: Profile): Named {
  return { name, current: (known.current ?? DEFAULT_PROFILE) === name, ...profile }
}

function find(known: Profiles, name: string): Named {
  const profile = Object.hasOwn(known.profiles, name) ? known.profiles[name] : undefined
  if (profile === undefined) throw unknown(name)
  return named(known, name, profile)
}

function unknown(name: string): CliError {
  return new CliError('profile_not_found', `There is no profile ${JSON.stringify(name.slice(0, 80))}.`, {
    hint: 'List them with `mayfly profile ls`.',
  })
}

const PLACES = { keychain: 'the keychain', file: 'a file' }

function inWords({ login, secret_in }: Profile): string | undefined {
  if (login === undefined || secret_in === undefined) return undefined
  return `${LOGIN_WORDS[login]}, in ${PLACES[secret_in]}`
}

/** Who, and until when as far as this machine knows. */
function operatorInWords({ operator }: Profile, now: number): string | undefined {
  if (operator === undefined) return undefined
  const ends = Date.parse(operator.expires) <= now ? 'ended' : 'ends'
  return `${nameOf(operator)}, ${ends} ${relative(operator.expires, now)}`
}
