import type { Context } from '../../cli/frame/verb.ts'
import type { Fault } from '../../domain/fault.ts'
import type { Trusted } from '../../domain/identity/identity.ts'
import { faultsOf } from '../config-file.ts'
import { filesFrom } from '../init/installation.ts'

/** Reads the entries as the server does, and reports every fault; undefined if there are any. */
export async function readTrustedFile(
  context: Context,
  file: string,
): Promise<{ readonly trusted: Trusted | undefined; readonly faults: readonly Fault[] }> {
  const { readIdentityFile } = await import('../../config/identity-file.ts')
  try {
    return { trusted: await readIdentityFile(file, filesFrom(context)), faults: [] }
  } catch (error) {
    return { trusted: undefined, faults: faultsOf(error) }
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
