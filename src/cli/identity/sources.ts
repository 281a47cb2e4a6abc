import type { Context } from '../frame/verb.ts'
import { aws } from './aws.ts'
import { azure } from './azure.ts'
import { FILE, fileSource } from './file.ts'
import { forgejo } from './forgejo.ts'
import { gcp } from './gcp.ts'
import { github } from './github.ts'
import { gitlab } from './gitlab.ts'
import { kubernetes } from './kubernetes.ts'
import type { IdentitySource } from './source.ts'
import { spiffe } from './spiffe.ts'

/** Variables and files say whether they are here. In the order of `auto`. */
export const NEAR: readonly IdentitySource[] = [github, forgejo, gitlab, kubernetes, spiffe]
/** Their metadata services must be asked, which `auto` does only at a login. */
const CLOUDS: readonly IdentitySource[] = [aws, gcp, azure]
export const SOURCES: readonly IdentitySource[] = [...NEAR, ...CLOUDS]

/** The source of this name, or `file:PATH`; undefined if there is none. */
export function sourceOf(context: Context, name: string): IdentitySource | undefined {
  if (name.startsWith(FILE) && name.length > FILE.length) return fileSource(context, name.slice(FILE.length))
  return SOURCES.find((one) => one.name === name)
}

/** The first that is here; a cloud only if its metadata service answers at once. */
export async function findSource(context: Context): Promise<IdentitySource | undefined> {
  const near = [...NEAR, ...CLOUDS].find((one) => one.isHere(context))
  if (near !== undefined) return near
  const answers = await Promise.all(CLOUDS.map((one) => one.answers?.(context, context.signal)))
  return CLOUDS.find((_, index) => answers[index] === true)
}
