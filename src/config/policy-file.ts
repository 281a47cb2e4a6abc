import { formatDuration } from '../domain/duration.ts'
import { ConfigError, InvalidValue, quote } from '../domain/fault.ts'
import { decideAdmission, type Explanation, explainAdmission } from '../domain/policy.ts'
import { isScope } from '../domain/scope.ts'
import { type ReadFiles, readConfigFiles } from './config-files.ts'
import { type ConfiguredPolicy, compilePolicies, type PolicyEntry, soundForm } from './policies.ts'
import { checkShape, gatherFile } from './sources.ts'

/**
 * Reads the policies of a configuration file and its drop-ins as the server does, ignoring the other settings. Throws `ConfigError`
 * with every fault and its place.
 */
export async function readPolicyFile(path: string, files: ReadFiles): Promise<readonly ConfiguredPolicy[]> {
  const all = (await readConfigFiles(path, path, files)).map(gatherFile)
  const [entries, found] = [all.flatMap((one) => one.entries), all.flatMap((one) => one.faults)]
  const entry = entries.find(({ field }) => field.path === 'policies')
  if (entry === undefined) {
    const mistyped = found.filter(({ message }) => message.includes('did you mean "policies"'))
    throw new ConfigError(
      mistyped.length > 0 ? mistyped : [{ source: path, message: 'contains no "policies"' }],
    )
  }
  const faults = checkShape(entry)
  const list = faults.length === 0 ? (entry.wire as readonly PolicyEntry[]) : soundForm(entry.wire)
  const policies = compilePolicies(list, ({ path, message }) => {
    faults.push({ source: entry.locate(path), message: `${['policies', ...path].join('.')}: ${message}` })
  })
  if (faults.length > 0) throw new ConfigError(faults)
  return policies
}

export interface FileExplanation extends Explanation {
  /** For example `8h`. */
  readonly expiresIn: string | undefined
}

/**
 * How these policies judge a name and scopes. Only the server knows how many agents exist already. Throws
 * `InvalidValue` for text that is not a scope.
 */
export function explainPolicies(
  policies: readonly ConfiguredPolicy[],
  request: { readonly name: string; readonly scopes: readonly string[] | undefined },
): FileExplanation {
  const wrong = request.scopes?.find((scope) => !isScope(scope))
  if (wrong !== undefined)
    throw new InvalidValue(`${quote(wrong)} is not a scope of the form backend:resource:permission`)
  const explained = explainAdmission(policies, request, decideAdmission(policies, request))
  const { lifetimeMs } = explained
  return { ...explained, expiresIn: lifetimeMs === undefined ? undefined : formatDuration(lifetimeMs) }
}
