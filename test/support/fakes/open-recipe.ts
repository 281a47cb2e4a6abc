import { readConfig } from '../../../src/backends/config-fields.ts'
import { kinds } from '../../../src/backends/index.ts'
import type { Issued } from '../../../src/backends/kind.ts'
import type { OpenKind, Probe } from '../../contract/open-kind.ts'
import { createTestHost } from '../host.ts'
import type { FakeApi } from './fake-api.ts'

export interface RecipeWish {
  readonly api: FakeApi
  /** Without `base_url` and `local`. */
  readonly config: Readonly<Record<string, unknown>>
  readonly scopes: readonly string[]
  readonly exists: NonNullable<Probe['exists']>
  /** A request as an agent would send it; it works if the status is 200. */
  use(issued: Issued): { readonly path: string; readonly headers: Readonly<Record<string, string>> }
  readonly expiresAt?: NonNullable<Probe['expiresAt']>
}

/** What the contract needs of a kind that is a built-in recipe. */
export async function openRecipe(type: string, wish: RecipeWish): Promise<OpenKind> {
  const { api, config, scopes, exists, use, expiresAt } = wish
  const kind = kinds.find((one) => one.type === type)
  if (kind === undefined) throw new Error(`there is no kind ${type}`)
  const { host, logged } = createTestHost(type)
  const configAt = (url: string) => {
    const read = readConfig(kind.config, { ...config, base_url: url, local: true })
    if (read.faults.length > 0) throw new Error(read.faults.join('; '))
    return read.config
  }
  const openAt = (url: string) => kind.open(configAt(url), host)
  return {
    kind,
    backend: await openAt(api.url),
    config: configAt(api.url),
    scopes,
    logged,
    probe: {
      exists,
      use: async (issued) => {
        const { path, headers } = use(issued)
        return (await fetch(api.url + path, { headers })).status === 200
      },
      ...(expiresAt === undefined ? {} : { expiresAt }),
    },
    // A port where nothing listens.
    unreachable: () => openAt('http://127.0.0.1:1'),
    hostile: openAt,
    close: () => api.close(),
  }
}

export const bearer = (issued: Issued) => ({ authorization: `Bearer ${issued.secret}` })
