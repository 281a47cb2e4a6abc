import type { OpenBackend } from '../../backends/open-backends.ts'
import { nameKey } from '../../domain/agent.ts'
import { Problem } from '../../domain/problems.ts'
import type { Caller } from '../caller.ts'
import type { Core } from '../context.ts'

type Parts = Pick<Core, 'backends'>

/** All backends, by name (decisions.md §2.4). */
export async function listBackends(core: Parts, caller: Caller): Promise<OpenBackend[]> {
  const { byName } = await core.backends.at(caller.generation)
  return [...byName.values()].sort((a, b) => (nameKey(a.name) < nameKey(b.name) ? -1 : 1))
}

/** As `listBackends`, with those that are being deleted. For administrators. */
export async function listAllBackends(core: Parts, caller: Caller): Promise<OpenBackend[]> {
  const { byUid } = await core.backends.at(caller.generation)
  const open = [...byUid.values()].filter(({ endedAt }) => endedAt === null)
  return open.sort((a, b) => (nameKey(a.name) < nameKey(b.name) ? -1 : 1))
}

/** As `readBackend`, also one that is being deleted. For administrators. Throws `backend_not_found`. */
export async function readAnyBackend(core: Parts, caller: Caller, name: string): Promise<OpenBackend> {
  const key = nameKey(name)
  const found = (await listAllBackends(core, caller)).find((one) => nameKey(one.name) === key)
  if (found === undefined) throw new Problem('backend_not_found')
  return found
}

/** Throws `backend_not_found`. */
export async function readBackend(core: Parts, caller: Caller, name: string): Promise<OpenBackend> {
  const { byName } = await core.backends.at(caller.generation)
  const found = byName.get(nameKey(name))
  if (found === undefined) throw new Problem('backend_not_found')
  return found
}
