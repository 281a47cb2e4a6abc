import type { Context } from '../frame/verb.ts'

/** The warnings of a reply, on standard error. */
export function noteWarnings(
  { out }: Pick<Context, 'out'>,
  { warnings = [] }: { readonly warnings?: readonly string[] | undefined },
): void {
  for (const warning of warnings) out.note(`Warning: ${warning}`, 'yellow')
}
