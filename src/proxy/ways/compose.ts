import { isObject } from '../../domain/formats/json.ts'
import { passwordOf } from '../../domain/secret-fields.ts'

/*
 * Fields that are made of others. Each is built from its parts, and nothing of the original is taken that was not looked at: what
 * cannot be understood is left out.
 */

export interface ComposeWith {
  /** By the secret. */
  readonly placeholderOf: (secret: string) => string | undefined
  /** The value of an open field. */
  readonly isOpen: (value: string) => boolean
}

/** `redis://user:password@host:6379/0` with a placeholder as password, for another address. */
export function composeUrl(
  value: string,
  { placeholderOf, isOpen }: ComposeWith,
  to: { readonly host: string; readonly port: number } | undefined,
): string | undefined {
  const url = new URL(value)
  const password = placeholderOf(passwordOf(value) ?? '')
  const user = decoded(url.username)
  if (password === undefined || user === undefined) return undefined
  const name = user === '' || isOpen(user) ? url.username : placeholderOf(user)
  if (name === undefined) return undefined
  // Between the child and the proxy there is no TLS.
  const scheme = to === undefined ? url.protocol : url.protocol.replace(/^(redis|mysql|amqp)s:$/, '$1:')
  const place = to === undefined ? url.host : `${to.host}:${to.port}`
  return `${scheme}//${name}:${password}@${place}${url.pathname}`
}

export interface Cluster {
  readonly server: string
  /** PEM. */
  readonly certificate: string
  readonly token: string
  readonly namespace: string | undefined
}

/** As JSON, which is YAML, too. */
export function composeKubeconfig({ server, certificate, token, namespace }: Cluster): string {
  const authority = Buffer.from(certificate).toString('base64')
  return JSON.stringify({
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: 'mayfly', cluster: { server, 'certificate-authority-data': authority } }],
    users: [{ name: 'mayfly', user: { token } }],
    contexts: [
      {
        name: 'mayfly',
        context: { cluster: 'mayfly', user: 'mayfly', ...(namespace === undefined ? {} : { namespace }) },
      },
    ],
    'current-context': 'mayfly',
  })
}

/** The logins of a configuration of docker. */
export function composeDockerConfig(
  value: string,
  { placeholderOf, isOpen }: ComposeWith,
): string | undefined {
  const auths = parsed(value)?.['auths']
  if (!isObject(auths)) return undefined
  const made: Record<string, Record<string, string>> = {}
  for (const [registry, entry] of Object.entries(auths)) {
    if (!isObject(entry)) return undefined
    const login: Record<string, string> = {}
    const { auth, registrytoken, identitytoken } = entry
    if (typeof auth === 'string') {
      const [, user = '', password = ''] =
        /^([^:]*):(.*)$/s.exec(Buffer.from(auth, 'base64').toString()) ?? []
      const held = placeholderOf(password)
      const name = isOpen(user) ? user : placeholderOf(user)
      if (held === undefined || name === undefined) return undefined
      login['auth'] = Buffer.from(`${name}:${held}`).toString('base64')
    }
    for (const [key, token] of Object.entries({ registrytoken, identitytoken })) {
      if (typeof token !== 'string') continue
      const held = placeholderOf(token)
      if (held === undefined) return undefined
      login[key] = held
    }
    made[registry] = login
  }
  return JSON.stringify({ auths: made })
}

function parsed(value: string): Record<string, unknown> | undefined {
  try {
    const json: unknown = JSON.parse(value)
    return isObject(json) ? json : undefined
  } catch {
    return undefined
  }
}

function decoded(text: string): string | undefined {
  try {
    return decodeURIComponent(text)
  } catch {
    return undefined
  }
}
