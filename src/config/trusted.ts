import { quote } from '../domain/fault.ts'
import type { Identity, KeySource, Platform } from '../domain/identity/identity.ts'
import type { ReadFile } from '../files/read-secret.ts'
import type { Place } from './check-entries.ts'
import type { CheckedIdentity } from './identities.ts'
import { type CheckedKeys, readAuthorities } from './key-source.ts'
import type { CheckedPlatform } from './platforms.ts'

interface Checked {
  readonly identities: readonly CheckedIdentity[]
  readonly platforms: readonly CheckedPlatform[]
}

/** Gets the place of each fault; the message never has the content of a file. */
export type ReportTrusted = (
  list: 'identities' | 'platforms',
  entry: string,
  path: Place,
  message: string,
) => void

/** Reads the files of all entries, and checks what concerns several. `own`: the issuers that this server has or had. */
export async function readTrusted(
  { identities, platforms }: Checked,
  own: readonly string[],
  readFile: ReadFile,
  report: ReportTrusted,
): Promise<{ identities: Identity[]; platforms: Platform[] }> {
  for (const entry of identities) {
    if (own.some((issuer) => isOf(entry, issuer)))
      report('identities', entry.name, [placeOf(entry)], 'is an issuer of this server itself')
  }
  for (const entry of platforms) {
    if (own.some((issuer) => isOurs(entry.issuer, issuer)))
      report('platforms', entry.name, ['issuer'], 'is an issuer of this server itself')
    const other = identities.find((one) => shares(one, entry.issuer))
    if (other !== undefined)
      report(
        'platforms',
        entry.name,
        ['issuer'],
        `is also the issuer of the identity ${quote(other.name)}; keep it in one of the two lists`,
      )
  }
  const read = async (
    list: 'identities' | 'platforms',
    name: string,
    { caFile, ...rest }: CheckedKeys,
  ): Promise<KeySource> => ({
    ...rest,
    ca: await readAuthorities(caFile, readFile, (path, message) => report(list, name, path, message)),
  })
  return {
    identities: await Promise.all(
      identities.map(async ({ keys, ...entry }) => ({
        ...entry,
        keys: await read('identities', entry.name, keys),
      })),
    ),
    platforms: await Promise.all(
      platforms.map(async ({ keys, ...entry }) => ({
        ...entry,
        keys: await read('platforms', entry.name, keys),
      })),
    ),
  }
}

const placeOf = ({ issuer }: CheckedIdentity) => (issuer.kind === 'pattern' ? 'issuer_pattern' : 'issuer')

/** A twin with another case or a slash at its end has the same keys. */
const plain = (issuer: string) => issuer.toLowerCase().replace(/\/$/, '')

/** Backends of the kind jwt issue as `<issuer>/backends/<name>`. */
const isOurs = (issuer: string, own: string) =>
  plain(issuer) === plain(own) || plain(issuer).startsWith(`${plain(own)}/backends/`)

function isOf({ issuer }: CheckedIdentity, own: string): boolean {
  switch (issuer.kind) {
    case 'issuer':
      return isOurs(issuer.issuer, own)
    case 'pattern':
      return issuer.rule.reaches(own, 0) || issuer.rule.reaches(`${own}/backends`, 1)
    case 'trust_domain':
      return false
  }
}

function shares({ issuer }: CheckedIdentity, other: string): boolean {
  if (issuer.kind === 'issuer') return plain(issuer.issuer) === plain(other)
  return issuer.kind === 'pattern' && issuer.rule.matches(other)
}
