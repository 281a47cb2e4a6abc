import { isLoopbackHost } from '../../domain/network/loopback.ts'
import type { Site } from '../types.ts'

/** Their registries are parts of a server, each with a path that only the user's own configuration names. */
const WITH_MANY: ReadonlySet<string> = new Set(['artifactory', 'gitea', 'github', 'gitlab'])

export interface Registries {
  readonly env: Readonly<Record<string, string>>
  readonly files: readonly { readonly variable: string; readonly name: string; readonly text: string }[]
}

/**
 * npm takes logins only from files. The one of the whole system is rarely there, so it is the one that is replaced: the user's own
 * and that of the project still count.
 */
export function registryVariables(sites: readonly Site[]): Registries {
  const npm = sites.filter(({ use }) => use.name === 'npm')
  const python = sites.find(({ held, use }) => use.name === 'pypi' && !WITH_MANY.has(held.type))
  const first = npm.find(({ held }) => !WITH_MANY.has(held.type))
  const files =
    npm.length === 0
      ? []
      : [{ variable: 'npm_config_globalconfig', name: 'npmrc', text: npm.map(npmrcLines).join('') }]
  return { env: { ...npmVariables(first), ...pythonVariables(python) }, files }
}

function npmVariables(site: Site | undefined): Record<string, string> {
  if (site === undefined) return {}
  const registry = `${site.url}${basePath(site)}/`
  return {
    npm_config_registry: registry,
    // What the registry says of packages names its own address, also where it is not that of npmjs.
    npm_config_replace_registry_host: 'always',
    YARN_NPM_REGISTRY_SERVER: registry,
    YARN_UNSAFE_HTTP_WHITELIST: '127.0.0.1',
  }
}

/**
 * Of the site and, for a registry that only the user's configuration names, of the upstream. To install, npm looks for the login of
 * a parent directory, too; to publish, only for that of the registry itself.
 */
function npmrcLines(site: Site): string {
  const { held, use, url } = site
  const token = tokenOf(held, use)
  if (token === undefined) return ''
  const base = basePath(site)
  const hosts = [url, use.origin].map((address) => new URL(address).host)
  const places = hosts.flatMap((host) => [`${host}/`, ...(base === '' ? [] : [`${host}${base}/`])])
  return places.map((place) => `//${place}:_authToken=${token}\n`).join('')
}

/**
 * The address of the upstream, to which HTTPS_PROXY leads: pip sends its login only to the host of the index, and many an index names
 * its files by their whole addresses. One on this machine is not reached so.
 */
function pythonVariables(site: Site | undefined): Record<string, string> {
  if (site === undefined) return {}
  const { held, use, url } = site
  const token = tokenOf(held, use)
  const login = token === undefined ? '' : `__token__:${token}@`
  const base = basePath(site)
  const origin = new URL(use.origin)
  const { protocol, host } =
    origin.protocol === 'https:' && !isLoopbackHost(origin.hostname) ? origin : new URL(url)
  const index = `${protocol}//${login}${host}${base.endsWith('/simple') ? base : `${base}/simple`}`
  return { PIP_INDEX_URL: index, UV_DEFAULT_INDEX: index, UV_INDEX_URL: index }
}

function tokenOf(held: Site['held'], use: Site['use']): string | undefined {
  return held.placeholders.get(use.places[0]?.field ?? '')
}

/** What the first rule names before its first star: `/npm/**`. */
function basePath({ use }: Site): string {
  const path = use.allow.find((rule) => rule.path.includes('*'))?.path ?? '/'
  return path.slice(0, path.indexOf('*')).replace(/\/[^/]*$/, '')
}
