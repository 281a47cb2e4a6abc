import { usage } from '../frame/failure.ts'

/** docker's name for its own registry. */
const HUB = 'https://index.docker.io/v1/'
const HUB_NAMES = new Set(['docker.io', 'index.docker.io', 'registry-1.docker.io'])

/** A registry in canonical form: `registry.example.com[:port]`, or `docker.io`. Undefined if it is not a registry. */
export function registryOf(text: string): string | undefined {
  const url = /^https?:\/\//i.test(text) ? text : `https://${text}`
  if (!URL.canParse(url)) return undefined
  const { host, hostname, username, password } = new URL(url)
  if (username !== '' || password !== '' || hostname === '' || /[%*\s]/.test(host)) return undefined
  // `URL` drops the default port of the scheme; docker keeps it.
  const port = /:(80|443)(?:\/|$)/.exec(text.replace(/^https?:\/\//i, ''))?.[1]
  const name = port === undefined || host.endsWith(`:${port}`) ? host : `${host}:${port}`
  return HUB_NAMES.has(name) ? 'docker.io' : name
}

/** Throws `CliError` (usage). */
export function needRegistry(text: string): string {
  const host = registryOf(text)
  if (host !== undefined) return host
  throw usage(
    'The registry is not a valid host.',
    'Example: registry.example.com or registry.example.com:5000.',
  )
}

/** The registry's name in docker's configuration. */
export function configKey(host: string): string {
  return host === 'docker.io' ? HUB : host
}
