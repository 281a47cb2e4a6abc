import { createHash } from 'node:crypto'
import type { IssueRequest } from '../kind.ts'
import { type Command, type Control, namePages, requireDone } from './control.ts'
import { aclsOf } from './scopes.ts'

/** Long enough that agents which renew every few minutes find their group. */
const LEAST_SPAN_S = 3_600

/** Tells the groups of a backend from those of others, and from clients. */
const prefixOf = (uid: string) => `mf_${uid}_`

/**
 * The name of the group that a credential's client is in, and of the group's one role. Credentials share it if they have equal
 * access, lifetimes of about the same length, and an end in the same span of time.
 *
 * The plugin cannot delete a group on condition that it is empty: a client that another node adds at that moment would lose its
 * access. So the name holds the end of the span. Once that is past, every member has expired, and nobody has to ask who is one.
 */
export function groupOf(uid: string, { scopes, issuedAt, expiresAt }: IssueRequest<unknown>): string {
  const lifetime = Math.max((expiresAt - issuedAt) / 1_000, LEAST_SPAN_S)
  // As long as the lifetime, so that few groups exist and none outlives its credentials for long.
  const span = 2 ** Math.ceil(Math.log2(lifetime))
  const end = Math.ceil(expiresAt / 1_000 / span) * span
  const access = aclsOf(scopes).map(({ acltype, topic, allow }) => `${acltype} ${topic} ${allow}`)
  const digest = createHash('sha256').update(access.toSorted().join('\n')).digest('hex')
  return `${prefixOf(uid)}${end}_${digest.slice(0, 32)}`
}

/**
 * Belong in the message that creates the client, because another node may delete an ended group at any time. They fail for a
 * group that exists. A group, and not the role alone: Mosquitto 2.0 does not note at a role the clients that are created
 * with it (dynsec_rolelist__load_from_json), and to delete it under one that is left would be a use after free.
 */
export function creationOf(group: string, scopes: readonly string[]): readonly Command[] {
  return [
    { command: 'createRole', rolename: group, acls: aclsOf(scopes) },
    { command: 'createGroup', groupname: group, roles: [{ rolename: group }] },
  ]
}

/** Deletes the groups whose span has ended by `now`, one after the other, until `isLate`. Another call goes on from there. */
export async function deleteGroups(
  control: Control,
  uid: string,
  { now = Number.POSITIVE_INFINITY, isLate = () => false }: { now?: number; isLate?: () => boolean },
  signal: AbortSignal,
): Promise<void> {
  const ended: string[] = []
  for await (const names of namePages(control, 'Roles', signal)) {
    ended.push(...names.filter((name) => endOf(uid, name) <= now))
  }
  for (const name of ended) {
    if (isLate()) return
    const commands = [
      { command: 'deleteGroup', groupname: name },
      { command: 'deleteRole', rolename: name },
    ]
    for (const answer of await control.run(commands, signal)) requireDone(answer)
  }
}

/** In epoch ms; not a number for other names. */
function endOf(uid: string, name: string): number {
  const prefix = prefixOf(uid)
  return name.startsWith(prefix) ? Number(name.slice(prefix.length).split('_')[0]) * 1_000 : Number.NaN
}
