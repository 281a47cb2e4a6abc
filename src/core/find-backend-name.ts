import type { Core } from './context.ts'

/** A backend in a filter, as entries and credentials have it: look-up ignores case, and so does the filter. */
export async function findBackendName(
  core: Pick<Core, 'store'>,
  name: string | undefined,
): Promise<string | undefined> {
  return name === undefined ? undefined : ((await core.store.backends.spellingOf(name)) ?? name)
}
