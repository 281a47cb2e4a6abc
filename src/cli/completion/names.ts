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
  const page = { limit: MOST }
  if (!isAdmin) {
    const { openAgentSession } = await import('../session/open.ts')
    const { client } = await openAgentSession(context)
    if (what === 'backends')
      return (await client.backends()).map(({ id, type }) => ({ word: id, about: type }))
    const held = await collect(client.active(page), MOST)
    return held.map(({ id, backend }) => ({ word: id, about: backend }))
  }
  const { openAdmin } = await import('../session/admin.ts')
  const { client, login } = await openAdmin(context)
  const { admin } = client
  switch (what) {
    case 'agents':
      return (await collect(admin.agents.list(page), MOST)).map(({ name, scopes }) => ({
        word: name,
        about: scopes.join(' '),
      }))
    case 'backends':
      return (await collect(admin.backends.list(page), MOST)).map(({ name, type }) => ({
        word: name,
        about: type,
      }))
    case 'kinds':
      return (await collect(admin.kinds(page), MOST)).map(({ type, title }) => ({ word: type, about: title }))
    case 'plugins': {
      const all = await collect(admin.plugins.list(page), MOST)
      return all
        .filter(({ builtin }) => !builtin)
        .map(({ name, version }) => ({ word: name, about: version }))
    }
    case 'requests':
      return (await collect(admin.pending.list({}, page), MOST)).flatMap(({ id, name }) => [
        { word: name, about: id },
        { word: id, about: name },
      ])
    case 'credentials': {
      const active = login === undefined ? admin.tokens.list({ status: 'active' }, page) : client.active(page)
      return (await collect<{ id: string; backend: string }>(active, MOST)).map(({ id, backend }) => ({
        word: id,
        about: backend,
      }))
    }
  }
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
  if (isAdmin) {
    const { openAdmin } = await import('../session/admin.ts')
    return (await openAdmin(context)).client.admin.backends.show(name)
  }
  const { openAgentSession } = await import('../session/open.ts')
  return (await openAgentSession(context)).client.backend(name)
}

async function profiles(context: Context): Promise<Candidate[]> {
  const { readProfiles } = await import('../session/profiles.ts')
  const { profiles: known } = await readProfiles(context)
  return Object.entries(known).map(([word, { server }]) => ({ word, about: server }))
}
