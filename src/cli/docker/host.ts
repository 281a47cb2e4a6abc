import { usage } from '../frame/failure.ts'

/** docker calls its own registry by this address, everywhere. */
const HUB = 'https://index.docker.io/v1/'
const HUB_NAMES = new Set(['docker.io', 'index.docker.io', 'registry-1.docker.io'])

/** A registry in one spelling: `registry.example.com[:port]`, or `docker.io`. Undefined for what is none. */
export function registryOf(text: string): string | undefined {
  const url = /^https?:\/\//i.test(text) ? text : `https://${text}`
  if (!URL.canParse(url)) return undefined
  const { host, hostname, username, password } = new URL(url)
  if (username !== '' || password !== '' || hostname === '' || /[%*\s]/.test(host)) return undefined
  // A port that is the scheme's own is left out by URL, and kept by docker.
  const port = /:(80|443)(?:\/|$)/.exec(text.replace(/^https?:\/\//i, ''))?.[1]
  const name = port === undefined || host.endsWith(`:${port}`) ? host : `${host}:${port}`
  return HUB_NAMES.has(name) ? 'docker.io' : name
}

/** Throws `CliError` (usage). */
export function needRegistry(text: string): string {
  const host = registryOf(text)
  if (host !== undefined) return host
  throw usage(
    'That is not the host of a registry.',
    'Give it as registry.example.com or registry.example.com:5000.',
  )
}

/** As the configuration of docker names it. */
export function configKey(host: string): string {
  return host === 'docker.io' ? HUB : host
}
