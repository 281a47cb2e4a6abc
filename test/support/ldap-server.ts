import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { hostname, tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { Client } from 'ldapts'
import type { Config } from '../../src/backends/ldap/config.ts'
import { readGuide } from '../docs/read-guide.ts'
import { eventually } from './app.ts'
import { freePort } from './free-port.ts'

const run = promisify(execFile)
/** Where the page has the rules for Mayfly's entry. */
const LDAP_RULES = '/etc/ldap/mayfly.conf'
const ROOT = 'dc=example,dc=com'
const GROUPS = ['readers', 'writers', 'idle'].map((name) => `cn=${name},ou=groups,${ROOT}`)
/** A name with every character that a DN must escape (RFC 4514 §2.4). */
export const HOSTILE_BASE = `ou=\\#a\\,b\\+c\\"d\\\\e\\<f\\>g\\;h\\=ä (*),${ROOT}`

export interface LdapServer {
  readonly url: string
  readonly secureUrl: string
  readonly ca: string
  /** The configuration of a backend, with StartTLS. */
  readonly settings: Config
  /** As the administrator. */
  admin<T>(work: (client: Client) => Promise<T>): Promise<T>
  /** A client that is logged in with these fields. */
  login(dn: unknown, password: unknown): Promise<Client>
  exists(username: unknown, base?: string): Promise<boolean>
  members(group: string): Promise<string[]>
  /** Ends slapd and starts it again on the same data. */
  restart(): Promise<void>
  stop(): Promise<void>
}

/**
 * An own slapd with its own database, TLS, and a login for Mayfly as the page of the kind describes it. A `bare` one has
 * neither that login nor its entries, and includes the file `rules`.
 */
export async function startLdapServer(bare?: { readonly rules: string }): Promise<LdapServer> {
  const directory = await mkdtemp(join(tmpdir(), 'mf-slapd-'))
  const at = (name: string) => join(directory, name)
  const [port, securePort] = [await freePort(), await freePort()]
  await mkdir(at('data'))
  await run('openssl', [
    ...['req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-days', '2', '-subj', '/CN=localhost'],
    ...[
      '-addext', // libldap takes `localhost` for the name of the machine.
      `subjectAltName=DNS:localhost,DNS:${hostname()}`,
      '-keyout',
      at('key.pem'),
      '-out',
      at('cert.pem'),
    ],
  ])
  await writeFile(at('slapd.conf'), configOf(directory, bare && `include ${bare.rules}`))
  await writeFile(at('start.ldif'), bare === undefined ? startLdif() : bareLdif())
  await run('/usr/sbin/slapadd', ['-f', at('slapd.conf'), '-l', at('start.ldif')])
  const start = async () => {
    const addresses = `ldap://127.0.0.1:${port} ldaps://127.0.0.1:${securePort}`
    const child = spawn('/usr/sbin/slapd', ['-f', at('slapd.conf'), '-h', addresses, '-d', '0'], {
      stdio: 'ignore',
    })
    await eventually(async () => {
      if (child.exitCode !== null) throw new Error('slapd ended')
      const socket = connect(port, '127.0.0.1')
      await once(socket, 'connect').finally(() => socket.destroy())
    })
    return child
  }
  let child = await start()
  const end = async () => {
    child.kill()
    if (child.exitCode === null) await once(child, 'exit')
  }
  const url = `ldap://localhost:${port}`
  const ca = await readFile(at('cert.pem'), 'utf8')
  const login = async (dn: unknown, password: unknown) => {
    const client = new Client({ url: `ldap://127.0.0.1:${port}` })
    await client.bind(String(dn), String(password)).catch(async (error) => {
      await client.unbind()
      throw error
    })
    return client
  }
  const admin: LdapServer['admin'] = async (work) => {
    const client = await login(`cn=admin,${ROOT}`, 'admin')
    return work(client).finally(() => client.unbind())
  }
  const base = `ou=agents,${ROOT}`
  const readOne = async (dn: string, attribute: string) =>
    admin(async (client) => {
      const found = await client.search(dn, { scope: 'base', attributes: [attribute] }).catch(() => undefined)
      return found?.searchEntries[0]
    })
  return {
    ...{ url, ca, login, admin, secureUrl: `ldaps://localhost:${securePort}` },
    settings: {
      ...{ url, base, ca, local: true, tls: 'verify-full', groups: GROUPS, group_attribute: 'member' },
      ...{ bind_dn: `cn=mayfly,${ROOT}`, bind_password: 'mayfly' },
    },
    exists: async (username, under = base) =>
      (await readOne(`uid=${username},${under}`, 'uid')) !== undefined,
    members: async (group) => {
      const entry = await readOne(`cn=${group},ou=groups,${ROOT}`, 'member')
      return [entry?.['member'] ?? []].flat().map(String)
    },
    async restart() {
      await end()
      child = await start()
    },
    async stop() {
      await end()
      await rm(directory, { recursive: true, force: true })
    },
  }
}

/** The rules of the page of the kind, which are all that Mayfly's entry may do. */
const RULES = rulesOfPage()

function rulesOfPage(): string {
  const page = readFileSync(new URL('../../docs/backends/ldap.md', import.meta.url), 'utf8')
  const rules = readGuide(page).find((step) => step.kind === 'file' && step.path === LDAP_RULES)
  if (rules?.kind !== 'file') throw new Error(`the page has no ${LDAP_RULES}`)
  return rules.text
}

/** The same for entries below another place. */
const rulesBelow = (place: string) =>
  RULES.replaceAll(`dn.subtree="ou=agents,${ROOT}"`, place).split(/^access to dn\.exact/m)[0] ?? ''

const configOf = (directory: string, rules: string | undefined) => `
include /etc/ldap/schema/core.schema
include /etc/ldap/schema/cosine.schema
include /etc/ldap/schema/nis.schema
include /etc/ldap/schema/inetorgperson.schema
modulepath /usr/lib/ldap
moduleload back_mdb
moduleload argon2
password-hash {ARGON2}
pidfile ${directory}/slapd.pid
TLSCACertificateFile ${directory}/cert.pem
TLSCertificateFile ${directory}/cert.pem
TLSCertificateKeyFile ${directory}/key.pem
sortvals member
database mdb
maxsize 1073741824
suffix "${ROOT}"
directory ${directory}/data
rootdn "cn=admin,${ROOT}"
rootpw admin
index objectClass,uid,member eq
dbnosync
${rules ?? rulesBelow(`dn.regex="^(uid=mf_[a-z0-9]+,)?ou=.*[(][*][)],${ROOT}$"`) + RULES}
access to dn.subtree="ou=secrets,${ROOT}"
  by group.exact="cn=readers,ou=groups,${ROOT}" read
access to dn.subtree="ou=drafts,${ROOT}"
  by group.exact="cn=writers,ou=groups,${ROOT}" read
access to dn.regex="^(.+,)?(uid=mf_[a-z0-9]+,ou=agents,${ROOT})$"
  by dn.exact,expand="$2" write
  by users read
access to *
  by users read
`

const unit = (dn: string) => `dn:: ${Buffer.from(dn).toString('base64')}\nobjectClass: organizationalUnit\n`
const FIRST = `dn: ${ROOT}\nobjectClass: dcObject\nobjectClass: organization\no: Example\ndc: example\n`

function bareLdif(): string {
  const document = `dn: cn=key,ou=secrets,${ROOT}\nobjectClass: device\ndescription: lamp\n`
  return [FIRST, unit(`ou=groups,${ROOT}`), unit(`ou=secrets,${ROOT}`), document].join('\n')
}

function startLdif(): string {
  const units = ['agents', 'groups', 'secrets', 'drafts'].map((name) => unit(`ou=${name},${ROOT}`))
  const groups = GROUPS.map((dn) => `dn: ${dn}\nobjectClass: groupOfNames\nmember: ${dn}\n`)
  return [
    FIRST,
    `dn: cn=mayfly,${ROOT}\nobjectClass: organizationalRole\nobjectClass: simpleSecurityObject\nuserPassword: mayfly\n`,
    ...units,
    unit(HOSTILE_BASE),
    ...groups,
    `dn: cn=locked,${ROOT}\nobjectClass: groupOfNames\nmember: cn=locked,${ROOT}\n`,
    `dn: cn=empty,ou=groups,${ROOT}\nobjectClass: groupOfNames\nmember: uid=mf_x,ou=agents,${ROOT}\n`,
  ].join('\n')
}
