import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'vitest'
import { startLdapServer } from '../../support/ldap-server.ts'
import type { StartUpstream } from '../backend-page.ts'

/** The page adds Mayfly's entry and the rules for it to a directory that has neither. */
export const ldap: StartUpstream = async ({ cwd, etc }) => {
  const rules = join(etc, 'ldap/mayfly.conf')
  await mkdir(join(etc, 'ldap'))
  await writeFile(rules, '')
  const server = await startLdapServer({ rules })
  const ca = join(cwd, 'ca.pem')
  await writeFile(ca, server.ca)
  await writeFile(join(cwd, 'admin-password'), 'admin', { mode: 0o600 })
  return {
    // As ldap.conf of the machine has them; LDAPURI is that of the kind once the command runs.
    env: { LDAPURI: server.url, LDAPTLS_CACERT: ca },
    services: { slapd: server.restart },
    replace: [['--url ldaps://ldap.example.com', `--url ${server.secureUrl} --ldap-ca-file ${ca} --local`]],
    async verify(results) {
      expect(results.at(-1)?.output).toContain('description: lamp')
      expect(await server.members('readers')).toEqual(['cn=readers,ou=groups,dc=example,dc=com'])
    },
    stop: server.stop,
  }
}
