import { denied } from '../../domain/backend-error.ts'
import { readNamed } from '../named-scopes.ts'
import { type Client, objectAt, refusal } from './client.ts'
import type { Config } from './config.ts'

/** A name of our form that no credential has. */
const SOME = 'mf_00000000000000000000000000'

/** What the policy of Mayfly must permit. A path beside `create` is also asked for where a role exists already. */
const NEEDED: readonly (readonly [path: string, ...capabilities: string[]])[] = [
  [`auth/token/roles/${SOME}`, 'create', 'update', 'delete'],
  [`auth/token/create/${SOME}`, 'update'],
  [`sys/leases/revoke-prefix/auth/token/create/${SOME}`, 'update', 'sudo'],
]

/** Asks Vault for the capabilities and policies of our login, and changes nothing. */
export async function preflight(
  settings: Config,
  client: Client,
  signal: AbortSignal,
): Promise<readonly string[]> {
  const self = await client.call({ method: 'GET', path: 'auth/token/lookup-self' }, signal)
  if (self.status >= 400) throw refusal(self, 'Vault does not accept the token of Mayfly.')
  const { policies, identity_policies: more } = objectAt(self.body, 'data')
  const held = [policies, more].flatMap((list) => (Array.isArray(list) ? list.map(String) : []))
  const paths = readNamed(settings.secrets ?? []).map(([, path]) => [path, 'read'] as const)
  const leases = paths.length === 0 ? [] : [['sys/leases/revoke', 'update'] as const]
  const needed = [...NEEDED, ...paths, ...leases]
  const body = { paths: needed.map(([path]) => path) }
  const reply = await client.call({ method: 'POST', path: 'sys/capabilities-self', body }, signal)
  if (reply.status >= 400) throw refusal(reply, 'Mayfly may not ask for its capabilities (default policy).')
  const capabilities = objectAt(reply.body, 'data')
  for (const [path, ...wanted] of needed) {
    const has = capabilities[path]
    const missing = wanted.find((one) => !(Array.isArray(has) && (has.includes(one) || has.includes('root'))))
    if (missing === undefined) continue
    const shown = path.replace(SOME, 'mf_*')
    throw denied(`The policy of Mayfly lacks "${missing}" on the path ${shown}.`)
  }
  if (held.includes('root')) return ['Mayfly logs in as root. Give it a role with a policy of its own.']
  // Those of an identity do not count: Vault compares with the policies of the token itself.
  const own = Array.isArray(policies) ? policies.map(String) : []
  const asked = readNamed(settings.policies ?? []).flatMap(([, theirs]) => theirs.split(' '))
  const lacking = asked.find((policy) => !own.includes(policy))
  if (lacking === undefined) return []
  throw denied(`Mayfly does not hold the policy "${lacking}" itself, which Vault requires.`)
}
