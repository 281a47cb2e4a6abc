import type { Client } from '../../client/client.ts'
import { collect } from '../frame/list.ts'
import type { Listed } from '../frame/options.ts'
import type { Context } from '../frame/verb.ts'
import type { Candidate, Wanted } from './candidates.ts'

/** A person who presses Tab does not wait for longer. */
const PATIENCE_MS = 1_500
/** More than anybody looks through. */
const MOST = 200
/** A shell puts the word into the command line as it is, so it must be nothing but a name, whatever a server says. */
const NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/

/** The names that an argument or option may take. None if they cannot be read: completion reports no errors. */
export async function namesOf(
  context: Context,
  { what, isAdmin, backends }: Omit<Wanted, 'globals'>,
): Promise<Candidate[]> {
  const signal = AbortSignal.any([context.signal, AbortSignal.timeout(PATIENCE_MS)])
  try {
    if (what === 'scopes') return await scopeForms({ ...context, signal }, isAdmin, backends)
    const found = await read({ ...context, signal }, what, isAdmin)
    return found.filter(({ word }) => NAME.test(word))
  } catch {
    return []
  }
}

async function read(
  context: Context,
  what: Exclude<Listed, 'scopes'>,
  isAdmin: boolean,
): Promise<Candidate[]> {
  if (what === 'profiles') return profiles(context)
  if (what === 'identities') return identities()
  const page = { limit: MOST }
  if (what === 'credentials') return credentials(context)
  if (what === 'runs') return runs(context)
  const client = await open(context, isAdmin)
  const { admin } = client
  switch (what) {
    case 'agents':
      return words(admin.agents.list(page), ({ name, scopes }) => [[name, scopes.join(' ')]])
    case 'backends':
      return (await client.backends()).map(({ id, type }) => ({ word: id, about: type }))
    case 'kinds':
      return words(admin.kinds(page), ({ type, title }) => [[type, title]])
    case 'plugins':
      return words(admin.plugins.list(page), ({ builtin, name, version }) =>
        builtin ? [] : [[name, version]],
      )
    case 'requests':
      return words(admin.pending.list({}, page), ({ id, name }) => [
        [name, id],
        [id, name],
      ])
  }
}

async function open(context: Context, isAdmin: boolean): Promise<Client> {
  if (isAdmin) return (await import('../session/admin.ts')).openAdminClient(context)
  return (await (await import('../session/open.ts')).openAgentSession(context)).client
}

/** Those that `mayfly revoke` may be given. */
async function credentials(context: Context): Promise<Candidate[]> {
  const { openAdminClient, openOwnClient } = await import('../session/admin.ts')
  const page = { limit: MOST }
  const own = await openOwnClient(context)
  if (own !== undefined) return words(own.active(page), heldWord)
  const { admin } = await openAdminClient(context)
  return words(admin.tokens.list({ status: 'active' }, page), heldWord)
}

/** Those that live, and that `mayfly runs end` may be given. */
async function runs(context: Context): Promise<Candidate[]> {
  const { openAdminClient, openOwnClient } = await import('../session/admin.ts')
  const page = { limit: MOST }
  const own = await openOwnClient(context)
  if (own !== undefined) return words(own.runs.list({ state: 'running' }, page), ({ id }) => [[id, '']])
  const { admin } = await openAdminClient(context)
  return words(admin.runs.list({ state: 'running' }, page), ({ id, agent }) => [[id, agent.name]])
}

const heldWord = ({ id, backend }: { readonly id: string; readonly backend: string }): Word[] => [
  [id, backend],
]

type Word = readonly [word: string, about: string]

async function words<T>(
  items: AsyncIterable<T>,
  wordsOf: (item: T) => readonly Word[],
): Promise<Candidate[]> {
  return (await collect(items, MOST)).flatMap(wordsOf).map(([word, about]) => ({ word, about }))
}

/** Nothing in it means anything to a shell: forms with `*` are left out. */
const SCOPE = /^[A-Za-z0-9][A-Za-z0-9._:/@+-]{0,199}$/

/** The forms of a scope: `database:read` to be filled in. With several backends each follows the name of its own. */
async function scopeForms(
  context: Context,
  isAdmin: boolean,
  backends: readonly string[],
): Promise<Candidate[]> {
  const all = await Promise.all(
    backends.map(async (backend) => {
      const { scope_forms: forms } = await readBackend(context, isAdmin, backend)
      const prefix = backends.length > 1 ? `${backend}:` : ''
      return forms.map(({ form, gives }) => ({
        word: `${prefix}${form.replace(/[<>]/g, '')}`,
        about: `${form}: ${gives}`,
      }))
    }),
  )
  return all.flat().filter(({ word }) => SCOPE.test(word))
}

async function readBackend(context: Context, isAdmin: boolean, name: string) {
  const client = await open(context, isAdmin)
  return isAdmin ? client.admin.backends.show(name) : client.backend(name)
}

async function profiles(context: Context): Promise<Candidate[]> {
  const { readProfiles } = await import('../session/profiles.ts')
  const { profiles: known } = await readProfiles(context)
  return Object.entries(known).map(([word, { server }]) => ({ word, about: server }))
}

async function identities(): Promise<Candidate[]> {
  const { SOURCES } = await import('../identity/sources.ts')
  const auto = { word: 'auto', about: 'the first that is here' }
  return [auto, ...SOURCES.map(({ name, title }) => ({ word: name, about: title }))]
}
