import type { Static } from 'typebox'
import { type InvalidValue, quote } from '../domain/fault.ts'
import { isLoopbackHost } from '../domain/network/loopback.ts'
import type { SsoGroup } from '../domain/people/sso.ts'
import { isAdminScope, isScope } from '../domain/scope.ts'
import type { Secret } from '../domain/secret.ts'
import type { ReadFile } from '../files/read-secret.ts'
import { checkEntries, type Note, type Place, readNoting } from './check-entries.ts'
import { readAuthorities } from './key-source.ts'
import type { SsoSchema } from './sso-schema.ts'

export type SsoEntry = Static<typeof SsoSchema>

interface Common {
  readonly name: string
  readonly issuer: string
  readonly clientId: string
  readonly local: boolean
  /** Requested of the provider. */
  readonly scopes: readonly string[]
  readonly groups: readonly SsoGroup[]
}

/** An entry that is well-formed. Its secret is still in a file. */
export interface CheckedSso extends Common {
  readonly clientSecretFile: string
  readonly caFile: string | undefined
}

export interface ConfiguredSso extends Common {
  readonly clientSecret: Secret
  /** PEM. */
  readonly ca: string | undefined
}

const NAME = /^[A-Za-z0-9](?:[A-Za-z0-9._ -]{0,62}[A-Za-z0-9._-])?$/
/** RFC 6749 §3.3. */
const REQUESTED = /^[\x21\x23-\x5b\x5d-\x7e]+$/
const DEFAULT_SCOPES = ['openid', 'profile', 'email']

/** Checks all entries and reports every fault with its place. Entries with faults are left out. */
export function checkSso(entries: readonly SsoEntry[], report: (fault: InvalidValue) => void): CheckedSso[] {
  const [names, issuers] = [new Set<string>(), new Set<string>()]
  return checkEntries(entries, report, (entry, note) => {
    const key = entry.name.toLowerCase()
    if (!NAME.test(entry.name))
      note(
        ['name'],
        `${quote(entry.name)} is not 1 to 64 letters, digits, spaces, ".", "_" or "-", with a letter or digit first and no space last`,
      )
    if (names.has(key)) note(['name'], `${quote(entry.name)} is already the name of another provider`)
    names.add(key)
    checkIssuer(entry, note)
    // A person is (issuer, subject): two entries would say differently what they hold.
    if (issuers.has(entry.issuer)) note(['issuer'], 'is already the issuer of another provider')
    issuers.add(entry.issuer)
    checkRequested(entry.scopes ?? DEFAULT_SCOPES, note)
    return checked(entry, checkGroups(entry.groups, note))
  })
}

function checked(entry: SsoEntry, groups: SsoGroup[]): CheckedSso {
  return {
    name: entry.name,
    issuer: entry.issuer,
    clientId: entry.client_id,
    clientSecretFile: entry.client_secret_file,
    caFile: entry.ca_file,
    local: entry.local ?? false,
    scopes: entry.scopes ?? DEFAULT_SCOPES,
    groups,
  }
}

function checkIssuer({ issuer, local = false }: SsoEntry, note: Note): void {
  const url = URL.canParse(issuer) ? new URL(issuer) : undefined
  const fault =
    url === undefined || !['https:', 'http:'].includes(url.protocol)
      ? 'is not a URL such as https://login.example.com'
      : url.username !== '' || url.password !== ''
        ? 'must not contain a user or password'
        : /[?#]/.test(issuer)
          ? 'must not have a query or fragment'
          : issuer.includes('/.well-known/')
            ? 'is the issuer itself: without /.well-known/ and what follows'
            : url.protocol === 'http:' && !local
              ? 'must start with https:// (http only with "local: true")'
              : isLoopbackHost(url.hostname) && !local
                ? 'is on this machine; if that is intended, add "local: true"'
                : undefined
  if (fault !== undefined) note(['issuer'], fault)
}

function checkRequested(scopes: readonly string[], note: Note): void {
  for (const [index, scope] of scopes.entries())
    if (!REQUESTED.test(scope)) note(['scopes', index], `${quote(scope)} is not a scope of OAuth`)
  if (!scopes.includes('openid')) note(['scopes'], 'must contain openid')
}

function checkGroups(groups: SsoEntry['groups'], note: Note): SsoGroup[] {
  const known = new Set<string>()
  return groups.map(({ group, scopes, backend_scopes: backendScopes = [] }, index) => {
    const at = ['groups', index]
    if (known.has(group)) note([...at, 'group'], `${quote(group)} is already in the list`)
    known.add(group)
    for (const [place, scope] of scopes.entries())
      if (!isScope(scope) || !isAdminScope(scope))
        note([...at, 'scopes', place], `${quote(scope)} is not an admin scope such as admin:agents:read`)
    for (const [place, scope] of backendScopes.entries())
      if (!isScope(scope) || isAdminScope(scope))
        note([...at, 'backend_scopes', place], `${quote(scope)} is not a scope of a backend`)
    if (scopes.length + backendScopes.length === 0) note(at, 'gives nothing: add scopes or backend_scopes')
    return { group, scopes, backendScopes }
  })
}

/** Reads the files. `report` gets the place of each fault; its message never has the content of a file. */
export async function readSso(
  entries: readonly CheckedSso[],
  readFile: ReadFile,
  report: (provider: string, path: Place, message: string) => void,
): Promise<ConfiguredSso[]> {
  return Promise.all(
    entries.map(async ({ clientSecretFile, caFile, ...rest }): Promise<ConfiguredSso> => {
      const note: Note = (path, message) => report(rest.name, path, message)
      const secretFault = (message: string) => note(['client_secret_file'], message)
      const clientSecret = await readNoting(clientSecretFile, readFile, () => undefined, secretFault)
      return { ...rest, clientSecret, ca: await readAuthorities(caFile, readFile, note) }
    }),
  )
}
