import type { Static, TSchema } from 'typebox'
import { Type } from 'typebox'
import { formatDuration } from '../domain/duration.ts'
import {
  ACCESS_TOKEN_MS,
  ENROLLMENTS_PER_MINUTE,
  MAX_ACTIVE_PER_AGENT,
  MAX_PENDING_ENROLLMENTS,
  TOKEN_FAILURES_PER_MINUTE,
  UPSTREAM_TIMEOUT_MS,
} from '../domain/limits.ts'
import { PolicySchema } from './policy-schema.ts'

/** Where a field may be given. */
export type SourceKind = 'flag' | 'environment' | 'file'

type Meta = {
  description: string
  /** In the form of the file; absent where there is none, or where `x-default` tells how it is derived. */
  default?: string | number | boolean | string[]
  /** In words, where the default depends on other fields. */
  'x-default'?: string
  /** The flag's argument as `--help` shows it. Absent: the field has no flag. */
  'x-argument'?: string
  /** Name of the flag where it is not the field's own. */
  'x-flag'?: string
  'x-secret'?: true
  /** Where it may be given; everywhere when absent. */
  'x-sources'?: SourceKind[]
}

const text = (meta: Meta) => Type.Optional(Type.String({ minLength: 1, ...meta }))
const flag = (meta: Meta) => Type.Optional(Type.Boolean(meta))
const count = (meta: Meta, maximum = 1_000_000) =>
  Type.Optional(Type.Integer({ minimum: 1, maximum, ...meta }))
const words = (meta: Meta) => Type.Optional(Type.Array(Type.String({ minLength: 1 }), meta))
const oneOf = <V extends string[]>(values: readonly [...V], meta: Meta) =>
  Type.Optional(Type.Enum(values, meta))

const NEEDED = { additionalProperties: false } as const

const LimitsSchema = Type.Object(
  {
    token_failures_per_minute: count({
      description: 'Failed logins at `/oauth/token` a minute, per client and address.',
      default: TOKEN_FAILURES_PER_MINUTE,
    }),
    enrollments_per_minute: count({
      description: 'Enrollment requests a minute, per address.',
      default: ENROLLMENTS_PER_MINUTE,
    }),
    max_pending_enrollments: count({
      description: 'Enrollments that may wait for a decision.',
      default: MAX_PENDING_ENROLLMENTS,
    }),
    max_active_per_agent: count({
      description: 'Active credentials of one agent.',
      default: MAX_ACTIVE_PER_AGENT,
    }),
    issue_rate: text({
      description: 'Credentials that one agent may be issued, such as `100/minute`.',
      'x-default': 'no limit',
    }),
    max_connections: count({ description: 'Open connections to the server.', default: 10_000 }, 1_000_000),
  },
  { ...NEEDED, description: 'What is too much. Every limit answers 429 with `Retry-After`.' },
)

const network = {
  listen: text({
    description: 'Address to listen on: `host:port`, or `[::]:port` for IPv6.',
    default: '127.0.0.1:8620',
    'x-argument': '<host:port>',
  }),
  unix_socket: text({
    description: 'Path of a unix socket to listen on as well; who can open it is the local administrator.',
    'x-default': 'none',
    'x-argument': '<path>',
  }),
  issuer: text({
    description:
      'Public address of this server, used in tokens and for discovery: https unless loopback; no trailing slash, query or fragment.',
    'x-default': '`http://localhost:<port>` (https with `tls_cert_file`)',
    'x-argument': '<url>',
  }),
  tls_cert_file: text({
    description: 'PEM file with the certificate chain; TLS is served when set, together with `tls_key_file`.',
    'x-default': 'none',
    'x-argument': '<path>',
  }),
  tls_key_file: text({
    description: 'PEM file with the private key of the certificate.',
    'x-default': 'none',
    'x-argument': '<path>',
  }),
  local_admin: oneOf(['auto', 'off'], {
    description: '`auto`: requests from this very host may administer without credentials; `off`: never.',
    default: 'auto',
    'x-argument': '<auto|off>',
  }),
  trusted_proxies: words({
    description:
      'Networks (CIDR) of proxies whose `X-Forwarded-For` is believed. Setting it turns the local administrator off.',
    default: [],
    'x-flag': 'trusted-proxy',
    'x-argument': '<cidr>',
  }),
}

const storage = {
  data_dir: text({
    description: 'Directory of the database, the master key and the admin token.',
    default: './mayfly-data',
    'x-argument': '<path>',
  }),
  database_url: text({
    description:
      'PostgreSQL address `postgres://…`; without it SQLite in `data_dir`. The flag takes no password.',
    'x-default': 'SQLite in `data_dir`',
    'x-argument': '<url>',
    'x-secret': true,
  }),
  database_url_file: text({
    description: 'File that holds the PostgreSQL address.',
    'x-default': 'none',
    'x-argument': '<path>',
  }),
  master_key_file: text({
    description: 'File with the master key, mode 0400 or 0600.',
    'x-default': '`<data_dir>/master.key`',
    'x-argument': '<path>',
  }),
  master_key: text({
    description: 'The master key itself.',
    'x-default': 'none',
    'x-secret': true,
    'x-sources': ['environment'],
  }),
  master_key_command: Type.Optional(
    Type.Union([Type.String({ minLength: 1 }), Type.Array(Type.String(), { minItems: 1 })], {
      description:
        'Program that prints the master key, with its arguments, as a list or as words without quoting; no shell is used. It has 10 seconds.',
      'x-default': 'none',
      'x-argument': '<words>',
    } satisfies Meta),
  ),
  retention: text({
    description:
      'How long audit entries are kept, and credentials, agents and enrollments that have ended: a duration of a day or more, or `forever`. Entries about a credential stay as long as it does.',
    default: 'forever',
    'x-argument': '<duration>',
  }),
}

const behaviour = {
  signing_domain: text({
    description: 'Domain of the e-mail addresses of signing keys.',
    'x-default': "the issuer's host, or `mayfly.local` where that is no domain",
    'x-argument': '<domain>',
  }),
  signing_identity: oneOf(['strict', 'committer', 'any'], {
    description:
      'Whose commits `POST /v1/sign` signs: author and committer are the agent, the committer is, or anybody’s.',
    default: 'strict',
    'x-argument': '<strict|committer|any>',
  }),
  signing_key_export: flag({
    description:
      'Whether `GET /v1/signing-key` hands out the private key. Without it agents sign by `POST /v1/sign` only.',
    default: true,
  }),
  access_token_ttl: text({
    description: 'Lifetime of access tokens: whole seconds, at most 24h.',
    default: formatDuration(ACCESS_TOKEN_MS),
    'x-argument': '<duration>',
  }),
  audiences: words({
    description: 'Audiences beside the issuer that every agent may ask tokens for.',
    default: [],
    'x-flag': 'audience',
    'x-argument': '<audience>',
  }),
  issue_by_get: flag({ description: 'Whether `GET /v1/credentials/{backend}` issues.', default: true }),
  revoke_undelivered: flag({
    description: 'Revoke a credential when the caller hung up before the answer was written.',
    default: true,
  }),
  log_level: oneOf(['debug', 'info', 'warn', 'error'], {
    description: 'Least level that is logged.',
    default: 'info',
    'x-argument': '<level>',
  }),
  log_format: oneOf(['json', 'pretty'], {
    description: 'One JSON object a line, or a line for people.',
    default: 'json',
    'x-argument': '<json|pretty>',
  }),
  access_log: flag({ description: 'Log every request.', default: false, 'x-argument': '[true|false]' }),
  shutdown_timeout: text({
    description: 'How long open requests may take after SIGTERM, at most 10m.',
    default: '30s',
    'x-argument': '<duration>',
  }),
  upstream_timeout: text({
    description: 'How long one call to an upstream may take, 100ms to 5m.',
    default: formatDuration(UPSTREAM_TIMEOUT_MS),
    'x-argument': '<duration>',
  }),
  quickstart: flag({
    description: 'Set up a server to try out; used by `npm start`.',
    default: false,
    'x-argument': '',
    'x-sources': ['flag'],
  }),
}

/** The configuration as it is written in the file. */
export const ConfigSchema = Type.Object(
  {
    ...network,
    ...storage,
    ...behaviour,
    limits: Type.Optional(LimitsSchema),
    policies: Type.Optional(
      Type.Array(PolicySchema, {
        description:
          'Who is let in without an administrator: in order, the first whose pattern matches decides.',
        default: [],
        'x-sources': ['file'],
      } satisfies Meta),
    ),
  },
  { $schema: 'https://json-schema.org/draft/2020-12/schema', title: 'Mayfly configuration', ...NEEDED },
)

type File = Static<typeof ConfigSchema>
type Limits = Static<typeof LimitsSchema>
/** Every field by its dotted path, in the form of the file. */
export type Wire = Required<Omit<File, 'limits'>> & {
  [K in keyof Limits as `limits.${K & string}`]-?: NonNullable<Limits[K]>
}
export type FieldPath = keyof Wire & string

export interface Field {
  readonly path: FieldPath
  readonly schema: TSchema
  readonly description: string
  readonly default: unknown
  /** The default as documents show it. */
  readonly defaultText: string
  /** Name of the environment variable, where it may be given there. */
  readonly env: string | undefined
  /** Name of the flag without dashes. */
  readonly flag: string | undefined
  readonly argument: string
  readonly secret: boolean
  readonly sources: readonly SourceKind[]
}

function describe(path: FieldPath, schema: TSchema): Field {
  const meta = schema as unknown as Meta
  const asked = meta['x-sources'] ?? ['flag', 'environment', 'file']
  const hasFlag = meta['x-argument'] !== undefined && asked.includes('flag')
  return {
    path,
    schema,
    description: meta.description,
    default: meta.default,
    defaultText: meta['x-default'] ?? `\`${JSON.stringify(meta.default).replaceAll('"', '')}\``,
    env: asked.includes('environment') ? `MAYFLY_${path.replace('.', '_').toUpperCase()}` : undefined,
    flag: hasFlag ? (meta['x-flag'] ?? path.replaceAll('_', '-')) : undefined,
    argument: meta['x-argument'] ?? '',
    secret: meta['x-secret'] === true,
    sources: asked.filter((source) => source !== 'flag' || hasFlag),
  }
}

/** Every field in the order of the schema, those of `limits` with their dotted path. */
export const FIELDS: readonly Field[] = Object.entries(ConfigSchema.properties).flatMap(([name, schema]) =>
  name === 'limits'
    ? Object.entries(LimitsSchema.properties).map(([inner, part]) =>
        describe(`limits.${inner}` as FieldPath, part),
      )
    : [describe(name as FieldPath, schema)],
)

/** Flag and variable that name the file itself. */
export const CONFIG_FLAG = 'config'
export const CONFIG_ENV = 'MAYFLY_CONFIG'
