import { readFile } from 'node:fs/promises'

const DOCS = new URL('../../../docs/backends/', import.meta.url)

export interface Rule {
  readonly path: string
  readonly capabilities: readonly string[]
  readonly denied: readonly string[]
  /** By parameter, patterns of values. */
  readonly allowed: Readonly<Record<string, readonly string[]>> | undefined
}

/** The policy of a page, as an administrator copies it. */
export async function documentedPolicy(page: string): Promise<string> {
  const [, hcl = ''] = /```hcl\n(.*?)```/s.exec(await readFile(new URL(page, DOCS), 'utf8')) ?? []
  return hcl
}

/** The part of Vault's default policy that matters here. */
export const DEFAULT_POLICY = `
path "auth/token/lookup-self" { capabilities = ["read"] }
path "auth/token/revoke-self" { capabilities = ["update"] }
path "sys/capabilities-self" { capabilities = ["update"] }`
/** https://developer.hashicorp.com/vault/docs/concepts/policies#root-protected-api-endpoints */
export const SUDO = /^(auth\/token\/accessors|sys\/leases\/(revoke-prefix|revoke-force|lookup)\/)/

export function readPolicy(hcl: string): readonly Rule[] {
  const listOf = (text = '') => [...text.matchAll(/"([^"]*)"/g)].map(([, one = '']) => one)
  return [...hcl.matchAll(/path "([^"]+)" \{((?:[^{}]|\{[^{}]*\})*)\}/g)].map(([, path = '', block = '']) => {
    const [, capabilities] = /capabilities\s*=\s*\[([^\]]*)\]/.exec(block) ?? []
    const parameters = (kind: string) => {
      const [, inner] = new RegExp(`${kind}_parameters\\s*=\\s*\\{([^}]*)\\}`).exec(block) ?? []
      if (inner === undefined) return undefined
      const entries = [...inner.matchAll(/"([^"]+)"\s*=\s*\[([^\]]*)\]/g)]
      return Object.fromEntries(entries.map(([, name = '', values]) => [name, listOf(values)]))
    }
    const no = Object.keys(parameters('denied') ?? {})
    return { path, capabilities: listOf(capabilities), denied: no, allowed: parameters('allowed') }
  })
}

export function matches(pattern: string, path: string): boolean {
  return pattern.endsWith('*') ? path.startsWith(pattern.slice(0, -1)) : path === pattern
}

/** The longest path decides; rules of the same path, from several policies, count together. */
export function bestRules(rules: readonly Rule[], path: string): readonly Rule[] {
  const fitting = rules.filter((rule) => matches(rule.path, path))
  const longest = Math.max(0, ...fitting.map((rule) => rule.path.length))
  return fitting.filter((rule) => rule.path.length === longest)
}
