import { ConfigError, type Fault, type InvalidValue } from '../domain/fault.ts'
import type { Trusted } from '../domain/identity/identity.ts'
import { type ReadFiles, readConfigFiles } from './config-files.ts'
import { type CheckedIdentity, checkIdentities, type IdentityEntry } from './identities.ts'
import { type CheckedPlatform, checkPlatforms, type PlatformEntry } from './platforms.ts'
import type { FieldPath } from './schema.ts'
import { checkShape, type Entry, gatherFile } from './sources.ts'
import { readTrusted } from './trusted.ts'

/**
 * Reads the identities and platforms of a configuration file and its drop-ins as the server does, ignoring the other settings
 * but those that say which issuers are its own. Throws `ConfigError` with every fault and its place.
 */
export async function readIdentityFile(path: string, files: ReadFiles): Promise<Trusted> {
  const all = (await readConfigFiles(path, path, files)).map(gatherFile)
  const entries = all.flatMap((one) => one.entries)
  const of = (field: FieldPath) => entries.find((entry) => entry.field.path === field)
  const lists = { identities: of('identities'), platforms: of('platforms') }
  if (lists.identities === undefined && lists.platforms === undefined) {
    const found = all.flatMap((one) => one.faults)
    const mistyped = found.filter(({ message }) => /did you mean "(?:identities|platforms)"/.test(message))
    throw new ConfigError(
      mistyped.length > 0
        ? mistyped
        : [{ source: path, message: 'contains neither "identities" nor "platforms"' }],
    )
  }
  const faults: Fault[] = []
  const identities = checked<IdentityEntry, CheckedIdentity>(lists.identities, checkIdentities, faults)
  const platforms = checked<PlatformEntry, CheckedPlatform>(lists.platforms, checkPlatforms, faults)
  const own = [of('issuer')?.wire, of('previous_issuers')?.wire].flat()
  const trusted = await readTrusted(
    { identities, platforms },
    own.filter((issuer) => typeof issuer === 'string'),
    files.readFile,
    (list, name, inner, message) => {
      const wire = lists[list]?.wire as readonly { readonly name: string }[]
      const place = [wire.findIndex((one) => one.name === name), ...inner]
      const source = lists[list]?.locate(place) ?? path
      faults.push({ source, message: `${[list, ...place].join('.')}: ${message}` })
    },
  )
  if (faults.length > 0) throw new ConfigError(faults)
  return trusted
}

function checked<Wire, Checked>(
  entry: Entry | undefined,
  check: (entries: readonly Wire[], report: (fault: InvalidValue) => void) => Checked[],
  faults: Fault[],
): Checked[] {
  if (entry === undefined) return []
  const wrong = checkShape(entry)
  faults.push(...wrong)
  if (wrong.length > 0) return []
  return check(entry.wire as readonly Wire[], ({ path, message }) =>
    faults.push({
      source: entry.locate(path),
      message: `${[entry.field.path, ...path].join('.')}: ${message}`,
    }),
  )
}
