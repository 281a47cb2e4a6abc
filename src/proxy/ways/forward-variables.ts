type Env = Readonly<Record<string, string | undefined>>

/** Programs that take one file in place of the system's roots. */
const REPLACING: readonly string[] = [
  // OpenSSL, and with it Ruby, PHP, uv and Python's ssl; Go on Linux; Bun.
  'SSL_CERT_FILE',
  'CURL_CA_BUNDLE',
  'GIT_SSL_CAINFO',
  'REQUESTS_CA_BUNDLE',
  'HTTPLIB2_CA_CERTS',
  'PIP_CERT',
  'AWS_CA_BUNDLE',
  'NIX_SSL_CERT_FILE',
  'CARGO_HTTP_CAINFO',
  'CODEX_CA_CERTIFICATE',
  'CLOUDSDK_CORE_CUSTOM_CA_CERTS_FILE',
  'GRPC_DEFAULT_SSL_ROOTS_FILE_PATH',
  'HEX_CACERTS_PATH',
  'npm_config_cafile',
]
/** Programs that add its certificates to their own. */
const ADDING: readonly string[] = ['NODE_EXTRA_CA_CERTS', 'DENO_CERT']
/** All that may name a file with roots. */
export const ROOT_FILES: readonly string[] = [...REPLACING, ...ADDING]

const HERE = ['localhost', '127.0.0.1', '::1', '[::1]']

/**
 * The variables that lead a program's whole HTTPS traffic to the forward proxy. `url` carries the login of the run; `bundle` is the
 * path of what `writeBundle` wrote. `env`: what the child will have otherwise. `hosts`: where the credentials are used, which must be
 * reached through the proxy even if the user excludes them from one. Plain HTTP stays as it is: no secret is put there.
 */
export function forwardVariables(
  url: string,
  bundle: string,
  env: Env,
  hosts: readonly string[] = [],
): Record<string, string> {
  const direct = excluded(env, hosts)
  const roots = Object.fromEntries(ROOT_FILES.map((name) => [name, bundle]))
  return {
    ...roots,
    HTTPS_PROXY: url,
    https_proxy: url,
    // A proxy that the user set for everything must not take what is for HTTPS or for a site of ours.
    ...(env['ALL_PROXY'] === undefined ? {} : { ALL_PROXY: url }),
    ...(env['all_proxy'] === undefined ? {} : { all_proxy: url }),
    NO_PROXY: direct,
    no_proxy: direct,
    // node:http and fetch of Node, from 22.21 and 24.5.
    NODE_USE_ENV_PROXY: '1',
    // Deno would otherwise trust Mozilla's roots alone.
    DENO_TLS_CA_STORE: 'system,mozilla',
    // Otherwise npm goes to the proxy that an npmrc of the user's names.
    npm_config_https_proxy: url,
    npm_config_noproxy: direct,
    ...(env['PIP_PROXY'] && { PIP_PROXY: url }),
    ...gitProxy(url, env),
  }
}

/** The sites, and what the user reaches without a proxy: a private network, for example, to which this one has no way. */
function excluded(env: Env, hosts: readonly string[]): string {
  const given = `${env['NO_PROXY'] ?? ''},${env['no_proxy'] ?? ''}`.split(/[\s,]+/)
  const kept = given.filter(
    (entry) => entry !== '' && entry !== '*' && !hosts.some((host) => isWithin(host, entry)),
  )
  return [...new Set([...HERE, ...kept])].join(',')
}

function isWithin(host: string, entry: string): boolean {
  const name = entry
    .toLowerCase()
    .replace(/:\d+$/, '')
    .replace(/^\*?\./, '')
  const plain = host.toLowerCase().replace(/^\*\./, '')
  return plain === name || plain.endsWith(`.${name}`) || (host.startsWith('*.') && name.endsWith(`.${plain}`))
}

/** `http.proxy` of the user's git would come before HTTPS_PROXY. */
function gitProxy(url: string, env: Env): Record<string, string> {
  const given = env['GIT_CONFIG_COUNT'] ?? ''
  const first = /^\d{1,4}$/.test(given) ? Number(given) : 0
  if (first >= 9999) return {}
  return {
    GIT_CONFIG_COUNT: String(first + 1),
    [`GIT_CONFIG_KEY_${first}`]: 'http.proxy',
    [`GIT_CONFIG_VALUE_${first}`]: url,
  }
}
