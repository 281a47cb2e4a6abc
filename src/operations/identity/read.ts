import { usage } from '../../cli/frame/failure.ts'
import type { Context } from '../../cli/frame/verb.ts'
import { givenOf } from '../../cli/session/session.ts'
import type { Fault } from '../../domain/fault.ts'
import type { Trusted } from '../../domain/identity/identity.ts'
import { filesFrom } from '../init/installation.ts'

/** The file that is named, or that the environment names. Throws `CliError`. */
export function fileOf({ env }: Context, given: string | undefined): string {
  const file = given ?? givenOf(env['MAYFLY_CONFIG'])
  if (file !== undefined) return file
  throw usage('No configuration file given.', 'Give the configuration file of the server.')
}

/** Reads the entries as the server does, and reports every fault; undefined if there are any. */
export async function readTrustedFile(
  context: Context,
  file: string,
): Promise<{ readonly trusted: Trusted | undefined; readonly faults: readonly Fault[] }> {
  const { readIdentityFile } = await import('../../config/identity-file.ts')
  try {
    return { trusted: await readIdentityFile(file, filesFrom(context)), faults: [] }
  } catch (error) {
    if (!(error instanceof Error) || error.name !== 'ConfigError') throw error
    return { trusted: undefined, faults: (error as Error & { faults: readonly Fault[] }).faults }
  }
}

/** What an entry says of its issuer, for people. */
export function issuerOf({ issuer }: Trusted['identities'][number]): string {
  switch (issuer.kind) {
    case 'issuer':
      return issuer.issuer
    case 'pattern':
      return issuer.rule.text
    case 'trust_domain':
      return `spiffe://${issuer.domain}`
  }
}
