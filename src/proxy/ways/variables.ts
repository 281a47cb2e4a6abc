import type { HttpUse } from '../../domain/use.ts'
import type { Site } from '../types.ts'

type Env = Readonly<Record<string, string | undefined>>

export interface SiteVariables {
  readonly env: Readonly<Record<string, string>>
  /** Files that a variable must name. `name` is safe as a file name. */
  readonly files: readonly { readonly variable: string; readonly name: string; readonly text: string }[]
  /** What the user should know, for standard error. */
  readonly notes: readonly string[]
}

/** Whether clients send the secret of this use only over TLS, so that its site must be https. */
export function needsTls(_type: string, _use: HttpUse): boolean {
  throw new Error('not built yet')
}

/**
 * The variables that lead programs to the sites. `env`: all that the child will have otherwise, its placeholders included: an
 * address is left out where its program would send a secret there that is none of ours.
 */
export function siteVariables(_sites: readonly Site[], _env: Env): SiteVariables {
  throw new Error('not built yet')
}
