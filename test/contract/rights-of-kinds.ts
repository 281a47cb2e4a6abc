import { MARK } from '../fuzz/values.ts'
import { createTestHost } from '../support/host.ts'
import { completeConfig, isRefusal, kindOfType, type Right, type RightsOfKind } from './rights.ts'
import { clouds } from './rights-of-clouds.ts'
import { recipes } from './rights-of-recipes.ts'
import { servers } from './rights-of-servers.ts'
import { tokens } from './rights-of-tokens.ts'

/** Every kind, some with several configurations. A test compares the list with that of the kinds. */
export const rightsOfKinds: readonly RightsOfKind[] = [...clouds, ...recipes, ...servers, ...tokens]

export const titleOf = ({ type, variant }: RightsOfKind) =>
  variant === undefined ? type : `${type}, ${variant}`

export const formsOf = ({ type, forms = [] }: RightsOfKind) => [
  ...kindOfType(type).scopes.forms.map(({ form }) => form),
  ...forms,
]

export type Rights = ReadonlyMap<string, Right>

/** The rights that a list of scopes gives, by their names; `undefined` where the kind refuses them. */
export async function createRights(
  of: RightsOfKind,
): Promise<(scopes: readonly string[]) => Promise<Rights | undefined>> {
  const kind = kindOfType(of.type)
  const config = await completeConfig(of)
  const read = await of.open({ kind, config, host: createTestHost('here').host })
  const issue = async (scopes: readonly string[]): Promise<Rights | undefined> => {
    try {
      return new Map((await read(scopes)).map((one) => [one.name, one]))
    } catch (error) {
      if (!isRefusal(error)) throw error
      if (String(error).includes(MARK)) throw new Error('the refusal repeats the scope', { cause: error })
      return undefined
    }
  }
  // Each list is issued once, however often it is asked for.
  const known = new Map<string, Promise<Rights | undefined>>()
  return (scopes) => {
    const key = JSON.stringify(scopes)
    const found = known.get(key) ?? issue(scopes)
    known.set(key, found)
    return found
  }
}
