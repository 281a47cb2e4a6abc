import { Check } from 'typebox/value'
import { formatDuration } from '../domain/duration.ts'
import { decideAdmission, type Explanation, explainAdmission } from '../domain/policy.ts'
import { isScope } from '../domain/scope.ts'
import { ConfigError, type Fault, InvalidValue, quote } from './fault.ts'
import { type ConfiguredPolicy, compilePolicies } from './policies.ts'
import { PolicySchema } from './policy-schema.ts'
import type { ReadFile } from './read-secret.ts'
import { checkShape, gatherFile } from './sources.ts'
import { readConfigFile } from './yaml-file.ts'

/**
 * Reads the policies of a configuration file as the server does, ignoring its other settings. Throws `ConfigError`
 * with every fault and its place.
 */
export async function readPolicyFile(path: string, readFile: ReadFile): Promise<readonly ConfiguredPolicy[]> {
  const file = await readConfigFile(path, path, readFile)
  const { entries, faults: found } = gatherFile(file)
  const entry = entries.find(({ field }) => field.path === 'policies')
  if (entry === undefined) {
    const mistyped = found.filter(({ message }) => message.includes('did you mean "policies"'))
    throw new ConfigError(
      mistyped.length > 0 ? mistyped : [{ source: path, message: 'contains no "policies"' }],
    )
  }
  const faults: Fault[] = checkShape(entry)
  const list = Array.isArray(entry.wire) ? (entry.wire as unknown[]) : []
  // Policies of a wrong shape are left out here, so that the faults of the others are reported too.
  const sound = list.flatMap((one, index) => (Check(PolicySchema, one) ? [{ index, policy: one }] : []))
  const policies = compilePolicies(
    sound.map(({ policy }) => policy),
    ({ path: [at, ...inner], message }) => {
      const place = [sound[Number(at)]?.index ?? 0, ...inner]
      faults.push({ source: entry.locate(place), message: `${['policies', ...place].join('.')}: ${message}` })
    },
  )
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
