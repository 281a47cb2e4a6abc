import { faultOfVariable } from './variable-names.ts'

/*
 * The one list of the variables that a server may have this command set. A server, a plugin or a recipe names variables and
 * fields, and is not trusted with the choice: one of them may send a program, and the user's own secret, elsewhere.
 */

/** A token, key or password for a program, or the name that belongs to it. */
const CREDENTIAL =
  /^[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)*_(?:TOKEN|KEY|KEY_ID|SECRET|SECRET_ID|PASSWORD|PASSWD|PWD|PASS|USER|USERNAME|CLIENT_ID)$/
/** Those that hold a secret. */
const SECRET =
  /_(?:TOKEN|KEY|SECRET|SECRET_ID|PASSWORD|PASSWD|PWD|PASS|PASSPHRASE|SEED|JWT|CREDS|CONNECTION_STRING|(?:KUBE|DOCKER_)CONFIG)$/

interface Program {
  /** What it logs in with, in the order in which it prefers them. */
  readonly secrets: readonly string[]
  /** Where it goes and whose account it uses there: set only beside the secret that it will use, of the same credential. */
  readonly others: readonly string[]
}

const program = (secrets: string, others: string): Program => ({
  secrets: secrets.split(' '),
  others: others === '' ? [] : others.split(' '),
})

/** Each address is spelt out: any `…_URL` might send a program elsewhere. */
const PROGRAMS: readonly Program[] = [
  program('PGPASSWORD', 'PGHOST PGPORT PGUSER PGDATABASE PGSSLMODE'),
  program('MYSQL_PWD MYSQL_PASSWORD', 'MYSQL_HOST MYSQL_PORT MYSQL_TCP_PORT MYSQL_USER MYSQL_DATABASE'),
  program('REDISCLI_AUTH REDIS_PASSWORD REDIS_URL', 'REDIS_URL REDIS_HOST REDIS_PORT'),
  program('MQTT_PASSWORD', 'MQTT_URL MQTT_HOST MQTT_PORT'),
  // The command sends all that it has.
  program('NATS_PASSWORD NATS_TOKEN NATS_CREDS', 'NATS_URL NATS_USER'),
  program('RABBITMQ_PASSWORD RABBITMQ_URL', 'RABBITMQ_URL RABBITMQ_HOST RABBITMQ_PORT RABBITMQ_VHOST'),
  program('AMQP_PASSWORD AMQP_URL', 'AMQP_URL'),
  program(
    'AWS_SECRET_ACCESS_KEY AWS_WEB_IDENTITY_TOKEN_FILE',
    'AWS_ACCESS_KEY_ID AWS_SESSION_TOKEN AWS_REGION AWS_DEFAULT_REGION AWS_ENDPOINT_URL AWS_ENDPOINT_URL_S3',
  ),
  // bao reads the variables of vault where its own are missing.
  program('BAO_TOKEN VAULT_TOKEN', 'BAO_ADDR BAO_NAMESPACE VAULT_ADDR VAULT_NAMESPACE'),
  program('GITLAB_TOKEN GITLAB_ACCESS_TOKEN OAUTH_TOKEN', 'GITLAB_HOST GITLAB_URI'),
  program('GH_ENTERPRISE_TOKEN GITHUB_ENTERPRISE_TOKEN', 'GH_HOST'),
  program('GITEA_SERVER_PASSWORD GITEA_SERVER_TOKEN', 'GITEA_SERVER_URL'),
  program('GRAFANA_AUTH', 'GRAFANA_URL'),
  program('GRAFANA_PASSWORD GRAFANA_TOKEN', 'GRAFANA_SERVER'),
  program('ELASTICSEARCH_PASSWORD ELASTICSEARCH_API_KEY', 'ELASTICSEARCH_ENDPOINTS ELASTICSEARCH_URL'),
  program('SONAR_TOKEN', 'SONAR_HOST_URL'),
  program('JFROG_PASSWORD JFROG_API_KEY JFROG_ACCESS_TOKEN', 'JFROG_URL'),
  program('JF_PASSWORD JF_ACCESS_TOKEN', 'JF_URL'),
  program('TFE_TOKEN', 'TFE_ADDRESS'),
  program('ARM_CLIENT_SECRET', 'ARM_TENANT_ID ARM_SUBSCRIPTION_ID'),
  program('AZURE_CLIENT_SECRET AZURE_FEDERATED_TOKEN_FILE', 'AZURE_TENANT_ID AZURE_SUBSCRIPTION_ID'),
  program('CLOUDFLARE_API_TOKEN', 'CLOUDFLARE_ACCOUNT_ID'),
  program(
    'CLOUDSDK_AUTH_ACCESS_TOKEN GOOGLE_OAUTH_ACCESS_TOKEN',
    'CLOUDSDK_CORE_PROJECT GOOGLE_CLOUD_PROJECT',
  ),
  program('OPENAI_API_KEY', 'OPENAI_ORG_ID OPENAI_PROJECT_ID'),
  program('DOPPLER_TOKEN', 'DOPPLER_PROJECT DOPPLER_CONFIG'),
  program('TAILSCALE_API_KEY TS_AUTHKEY', 'TAILSCALE_TAILNET'),
  program('REGISTRY_PASSWORD REGISTRY_TOKEN', 'REGISTRY_URL'),
  program('LDAP_PASSWORD LDAP_BIND_PASSWORD', 'LDAP_URI LDAP_URL LDAP_BINDDN LDAP_BIND_DN'),
  program('TF_TOKEN_app_terraform_io', ''),
  // A file with the address and the token in one.
  program('KUBECONFIG', ''),
  program('ANTHROPIC_AUTH_TOKEN', 'ANTHROPIC_CUSTOM_HEADERS'),
]

/** Read by programs that log in with something else than a variable: never set, also not where a prefix makes the name. */
const NEVER: ReadonlySet<string> = new Set(
  'DOCKER_HOST DOCKER_URL CONTAINER_HOST PIP_INDEX_URL NPM_CONFIG_REGISTRY GIT_NAMESPACE'.split(' '),
)

/** Variables that a kind may set to exactly this, because a program needs it beside a secret. */
const CONSTANTS: ReadonlyMap<string, string> = new Map([
  // The API refuses a token of OAuth without it, and no client sends it by itself (ADR 0047).
  ['ANTHROPIC_CUSTOM_HEADERS', 'anthropic-beta: oauth-2025-04-20'],
])

const KNOWN: ReadonlySet<string> = new Set(PROGRAMS.flatMap(({ secrets, others }) => [...secrets, ...others]))
const PROGRAM_OF: ReadonlyMap<string, Program> = new Map(
  PROGRAMS.flatMap((one) => one.others.map((name) => [name, one] as const)),
)

/** Fields that are no secret and no name of an account, but say where it is valid. */
const ADDRESSES = 'host hostname port url uri address addr endpoint server domain registry'.split(' ')
/** Further fields whose variables, `<PREFIX>_<FIELD>`, no program takes for a command, a library or a setting of its own. */
const FIELDS: ReadonlySet<string> = new Set(
  [
    'token key secret password passwd pass passphrase user username login account email id name client_id key_id',
    'private_key public_key certificate ca seed jwt creds kubeconfig docker_config connection_string',
    'database db dbname schema vhost bucket namespace project organization org tenant tenant_id account_id role role_id',
    'dn base accessor region sslmode scope scopes expires_at nkey service_account',
    ...ADDRESSES,
  ].flatMap((line) => line.split(' ')),
)

/** Whether a kind may have the command set this variable, to this text, without a mapping. */
export function isConventional(name: string, text: string): boolean {
  const constant = CONSTANTS.get(name)
  if (constant !== undefined) return text === constant
  return (CREDENTIAL.test(name) || KNOWN.has(name)) && !NEVER.has(name) && faultOfVariable(name) === undefined
}

/** Whether a field of a credential may complete the prefix that the user gave. */
export function isOrdinaryField(field: string): boolean {
  const name = field.replaceAll('-', '_')
  return FIELDS.has(name.toLowerCase()) || CREDENTIAL.test(`X_${name.toUpperCase()}`)
}

/**
 * Of the variables that one credential would set, those that would send a secret of the user's own elsewhere: an address
 * without the secret that its program will use there. `prefix` is that of the variables of the fields.
 */
export function strayAddresses(
  wanted: Readonly<Record<string, string>>,
  env: Readonly<Record<string, string | undefined>>,
  prefix: string,
): string[] {
  const hasOwnSecret = Object.entries(wanted).some(
    ([name, value]) => name.startsWith(prefix) && SECRET.test(name) && value !== '',
  )
  const isAddress = new Set(ADDRESSES.map((field) => `${prefix}${field.toUpperCase()}`))
  return Object.keys(wanted).filter((name) => {
    if (NEVER.has(name)) return true
    const program = PROGRAM_OF.get(name)
    if (program === undefined) return isAddress.has(name) && !hasOwnSecret
    const used = program.secrets.find((one) => holdsSecret(one, wanted[one] ?? env[one]))
    return used === undefined || wanted[used] === undefined
  })
}

/** A variable for a URL holds one if the URL has a password. */
function holdsSecret(name: string, value: string | undefined): boolean {
  if (value === undefined || value === '') return false
  return !name.endsWith('_URL') || /^[a-z][a-z0-9+.-]*:\/\/[^/?#@]*:[^/?#@]+@/i.test(value)
}
