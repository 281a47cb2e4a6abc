import type { Client } from 'ldapts'
import type { Issued } from '../../src/backends/kind.ts'
import type { Hold } from '../../src/plugin-sdk/testing/open-kind.ts'
import type { LdapServer } from './ldap-server.ts'

const ROOT = 'dc=example,dc=com'

const succeeds = (work: Promise<unknown>) =>
  work.then(
    () => true,
    () => false,
  )

/** What a group of the credential may read; an open session of an entry that is gone still has what rules give to `users`. */
const readsSecrets = (client: Client) =>
  client.search(`ou=secrets,${ROOT}`, { scope: 'base' }).then(
    ({ searchEntries }) => searchEntries.length === 1,
    () => false,
  )

async function session(server: LdapServer, { fields }: Issued) {
  const login = () => server.login(fields?.['dn'], fields?.['password'])
  const client = await login()
  const works = async () => (await readsSecrets(client)) || (await succeeds(login()))
  return { client, works, dn: String(fields?.['dn']) }
}

export async function staysLoggedIn(server: LdapServer, issued: Issued): Promise<Hold> {
  const { client, works } = await session(server, issued)
  return { works, [Symbol.asyncDispose]: () => client.unbind() }
}

/** Where the directory lets an account write below its own entry: entries below entries, and one that refers elsewhere. */
export async function plantsEntries(server: LdapServer, issued: Issued): Promise<Hold> {
  const { client, works, dn } = await session(server, issued)
  const place = (cn: string) => ({ objectClass: ['device'], cn })
  await client.add(`cn=a,${dn}`, place('a'))
  await client.add(`cn=b,cn=a,${dn}`, place('b'))
  const referral = { objectClass: ['referral', 'extensibleObject'], ref: 'ldap://127.0.0.1:1/dc=x', cn: 'r' }
  await client.add(`cn=r,${dn}`, referral)
  let isOver = false
  const loop = async () => {
    for (let count = 0; !isOver; count += 1)
      await succeeds(client.add(`cn=${count},${dn}`, place(String(count))))
  }
  const looping = loop()
  return {
    works: async () => (await works()) || (await succeeds(client.add(`cn=last,${dn}`, place('last')))),
    async [Symbol.asyncDispose]() {
      isOver = true
      await looping
      await client.unbind()
    },
  }
}
