import { CliError } from '../frame/failure.ts'

/** What a kubeconfig may say: none of it names a program to run, a local file to send, or a proxy. */
const TOP = ['apiVersion', 'kind', 'preferences', 'clusters', 'users', 'contexts', 'current-context']
const PARTS = [
  ['clusters', 'cluster', ['server', 'certificate-authority-data', 'tls-server-name']],
  ['users', 'user', ['token', 'client-certificate-data', 'client-key-data']],
  ['contexts', 'context', ['cluster', 'user', 'namespace']],
] as const

type Shape = Readonly<Record<string, unknown>>

/**
 * The same kubeconfig as JSON, so that kubectl cannot read another one than this has checked. Throws `CliError` for one that says
 * more than where a cluster is and how to log in there: kubectl would run the programs that a kubeconfig names.
 */
export async function plainKubeconfig(text: string): Promise<string> {
  const { parse } = await import('yaml')
  let config: unknown
  try {
    config = parse(text, { maxAliasCount: 0 })
  } catch {
    throw refused('It is no YAML.')
  }
  const top = onlyWith(config, TOP)
  for (const [list, part, keys] of PARTS) {
    const entries = top[list] ?? []
    if (!Array.isArray(entries)) throw refused(`"${list}" is no list.`)
    for (const entry of entries) {
      const fields = onlyWith(onlyWith(entry, ['name', part])[part], keys)
      if (Object.values(fields).some((value) => typeof value !== 'string'))
        throw refused(`A "${part}" has a field that is no text.`)
    }
  }
  return JSON.stringify({ ...top, preferences: {} })
}

function onlyWith(value: unknown, keys: readonly string[]): Shape {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw refused('A part is missing.')
  const other = Object.keys(value).find((key) => !keys.includes(key))
  if (other !== undefined) throw refused(`It says ${JSON.stringify(other.slice(0, 40))}.`)
  return value as Shape
}

function refused(why: string): CliError {
  return new CliError('kubeconfig_refused', `The kubeconfig holds more than a cluster and a login. ${why}`, {
    hint: 'If you trust the server, use `mayfly run --file KUBECONFIG=BACKEND:FIELD`.',
  })
}
