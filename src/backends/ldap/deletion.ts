import type { Client } from 'ldapts'
import { unavailable } from '../../domain/backend-error.ts'
import { codeOf, NO_SUCH_OBJECT, NOT_A_LEAF, unless } from './client.ts'
import type { Config } from './config.ts'

/** The name needs no escaping in a DN (RFC 4514 §2.4); the base is written as it was configured. */
export const dnOf = ({ base }: Pick<Config, 'base'>, username: string): string => `uid=${username},${base}`

/** RFC 3296 §3: an entry that refers to another server is a plain entry, which can be deleted. */
const MANAGE_DSA_IT = '2.16.840.1.113730.3.4.2'
const PAGE = 500

/**
 * Deletes the entry, and looks whether it is gone. Where the rules of the directory let its holder add entries below it, the
 * server deletes it only without them. It is then renamed first: rules for `self` no longer fit the holder's sessions, which
 * could otherwise add entries for ever.
 */
export async function deleteEntry(client: Client, settings: Config, username: string): Promise<void> {
  const dn = dnOf(settings, username)
  const ended = `uid=${username}ended`
  const code = await deletionOf(client, dn)
  if (code === NOT_A_LEAF) await client.modifyDN(dn, ended).catch(unless(NO_SUCH_OBJECT))
  if (code !== undefined) await deleteTree(client, `${ended},${settings.base}`)
  const left = await client.search(dn, { scope: 'base', attributes: ['1.1'] }).catch(unless(NO_SUCH_OBJECT))
  if ((left?.searchEntries.length ?? 0) > 0) {
    throw unavailable('The LDAP server still has the entry.')
  }
}

/** Also if the entry is gone, or a crash has left the tree half deleted. */
async function deleteTree(client: Client, top: string): Promise<void> {
  if ((await deletionOf(client, top)) !== NOT_A_LEAF) return
  const { Control } = await import('ldapts')
  const control = new Control(MANAGE_DSA_IT)
  const search = { scope: 'sub' as const, attributes: ['1.1'], paged: { pageSize: PAGE } }
  const names: string[] = []
  for await (const { searchEntries } of client.searchPaginated(top, search, control)) {
    names.push(...searchEntries.map(({ dn }) => dn))
  }
  // An entry below another has the longer name.
  for (const name of names.sort((a, b) => b.length - a.length)) await deletionOf(client, name)
  const code = await deletionOf(client, top)
  if (code === NOT_A_LEAF) {
    throw unavailable('The LDAP server still has entries below that of the credential.')
  }
}

/** The result code, unless it is success. */
async function deletionOf(client: Client, dn: string): Promise<number | undefined> {
  const { Control } = await import('ldapts')
  try {
    await client.del(dn, new Control(MANAGE_DSA_IT))
    return undefined
  } catch (error) {
    const code = codeOf(error)
    if (code === NO_SUCH_OBJECT || code === NOT_A_LEAF) return code
    throw error
  }
}
