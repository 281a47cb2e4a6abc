import { formatDuration, parseBoundedDuration } from '../domain/duration.ts'
import {
  ACCESS_TOKEN_MS,
  ENROLLMENTS_PER_MINUTE,
  MAX_ACTIVE_PER_AGENT,
  MAX_PENDING_ENROLLMENTS,
  MINUTE_MS,
  TOKEN_FAILURES_PER_MINUTE,
  TOKENS_PER_MINUTE,
  UPSTREAM_TIMEOUT_MS,
} from '../domain/limits.ts'
import { Secret } from '../domain/secret.ts'
import { ENTRIES } from './entry-settings.ts'
import { runs } from './run-settings.ts'
import { command, count, duration, flag, list, oneOf, text } from './setting.ts'
import {
  parseAudience,
  parseCidr,
  parseConfigRate,
  parseDatabaseUrl,
  parseDomain,
  parseEndpoint,
  parseIssuer,
  parseListen,
  parsePath,
  parseRetention,
  parseTokenTtl,
  parseUser,
  parseVariable,
} from './values.ts'

const between = (least: number, most: number) => (given: string) => parseBoundedDuration(given, least, most)

const network = {
  listen: text(
    {
      description: 'Address to listen on: `host:port`, or `[::]:port` for IPv6.',
      default: '127.0.0.1:8620',
      'x-argument': '<host:port>',
    },
    parseListen,
  ),
  issuer: text(
    {
      description:
        'Public URL of this server, used in tokens and for discovery: https unless loopback, without a trailing slash, query or fragment.',
      'x-default': '`http://127.0.0.1:<port>` (https with `tls_cert_file`)',
      'x-argument': '<url>',
      'x-shared': true,
    },
    parseIssuer,
  ),
  previous_issuers: list(
    {
      description:
        'Earlier values of `issuer` for which agents may still sign in with their key. List only addresses that are still yours: a server that answers there can use these logins here.',
      default: [],
      'x-flag': 'previous-issuer',
      'x-argument': '<url>',
      'x-shared': true,
    },
    parseIssuer,
  ),
  tls_cert_file: text(
    {
      description: 'PEM file with the certificate chain. Enables TLS, together with `tls_key_file`.',
      'x-default': 'none',
      'x-argument': '<path>',
      'x-reload': true,
    },
    parsePath,
  ),
  tls_key_file: text(
    {
      description: 'PEM file with the private key of the certificate.',
      'x-default': 'none',
      'x-argument': '<path>',
      'x-reload': true,
    },
    parsePath,
  ),
  local_admin: oneOf(['auto', 'off'], {
    description:
      '`auto`: requests from this host may administer without credentials; `off`: only through `admin.sock` in `data_dir`.',
    default: 'auto',
    'x-argument': '<auto|off>',
  }),
  trusted_proxies: list(
    {
      description:
        'Networks (CIDR) of proxies whose `X-Forwarded-For` the server trusts. Setting it turns the local administrator off.',
      default: [],
      'x-flag': 'trusted-proxy',
      'x-argument': '<cidr>',
    },
    parseCidr,
  ),
}

const storage = {
  data_dir: text(
    {
      description: 'Directory of the database, the master key and the socket of its administrators.',
      default: './mayfly-data',
      'x-argument': '<path>',
    },
    parsePath,
  ),
  database_url: text(
    {
      description:
        'PostgreSQL URL, `postgres://…`. Without it the server uses SQLite in `data_dir`. The flag refuses a URL with a password.',
      'x-default': 'SQLite in `data_dir`',
      'x-argument': '<url>',
      'x-secret': true,
    },
    parseDatabaseUrl,
  ),
  database_url_file: text(
    {
      description: 'File that contains the PostgreSQL URL.',
      'x-default': 'none',
      'x-argument': '<path>',
    },
    parsePath,
  ),
  master_key_file: text(
    {
      description: 'File with the master key, mode 0400 or 0600.',
      'x-default': '`<data_dir>/master.key`',
      'x-argument': '<path>',
    },
    parsePath,
  ),
  master_key: text(
    {
      description: 'The master key itself.',
      'x-default': 'none',
      'x-secret': true,
      'x-sources': ['environment'],
    },
    (given) => new Secret(given),
  ),
  master_key_command: command({
    description:
      'Command that prints the master key: a list of words, or words without quoting. Runs without a shell, for at most 10 seconds.',
    'x-default': 'none',
    'x-argument': '<words>',
  }),
  retention: duration(
    {
      description:
        'How long to keep audit entries and ended credentials, agents and enrollments: a duration of a day or more, or `forever`. Entries about a credential stay as long as the credential.',
      default: 'forever',
      'x-argument': '<duration>',
      'x-shared': true,
    },
    parseRetention,
  ),
}

const behaviour = {
  otlp_endpoint: text(
    {
      description:
        'Where traces go: the base address of a receiver of OTLP over HTTP, which may be on this machine or in your own network, also without TLS.',
      'x-default': 'none',
      'x-argument': '<url>',
    },
    parseEndpoint,
  ),
  recipes_dir: text(
    {
      description:
        'Directory of recipes, files `*.yaml` that each describe a kind of backend. A faulty one is skipped and named in the log.',
      'x-default': 'none',
      'x-argument': '<path>',
      'x-reload': true,
      'x-shared': true,
    },
    parsePath,
  ),
  plugin_dir: text(
    {
      description:
        'Directory of the plugins that were added. It must belong to root or the user of the server, and nobody else may write to it.',
      'x-default': '`<data_dir>/plugins`',
      'x-argument': '<path>',
    },
    parsePath,
  ),
  plugin_user: text(
    {
      description:
        'User that plugins run as, a name or a number. Only a server that runs as root can start them as another user.',
      'x-default': 'the user of the server',
      'x-argument': '<user>',
    },
    parseUser,
  ),
  plugin_env: list(
    {
      description: 'Variables of the server that plugins get. They get no others.',
      default: [],
      'x-argument': '<name>',
    },
    parseVariable,
  ),
  signing_domain: text(
    {
      description: 'Domain of the email addresses in signing keys.',
      'x-default': "the issuer's host, or `mayfly.local` if that is not a domain",
      'x-argument': '<domain>',
      'x-shared': true,
    },
    parseDomain,
  ),
  signing_identity: oneOf(['strict', 'committer', 'any'], {
    description:
      'Which commits `POST /v1/sign` signs. `strict`: author and committer must be the agent; `committer`: the committer must be; `any`: all.',
    default: 'strict',
    'x-argument': '<strict|committer|any>',
    'x-shared': true,
  }),
  signing_key_export: flag({
    description:
      'Whether `GET /v1/signing-key` returns the private key. Without it agents can only sign through `POST /v1/sign`.',
    default: true,
    'x-shared': true,
  }),
  access_token_ttl: duration(
    {
      description: 'Lifetime of access tokens: whole seconds, at most 24h.',
      default: formatDuration(ACCESS_TOKEN_MS),
      'x-argument': '<duration>',
      'x-shared': true,
    },
    parseTokenTtl,
  ),
  audiences: list(
    {
      description: 'Audiences besides the issuer for which every agent may request tokens.',
      default: [],
      'x-flag': 'audience',
      'x-argument': '<audience>',
      'x-shared': true,
    },
    parseAudience,
  ),
  issue_by_get: flag({
    description: 'Whether `GET /v1/credentials/{backend}` issues.',
    default: true,
    'x-shared': true,
  }),
  console: oneOf(['on', 'off'], {
    description:
      '`on`: operators log in with a browser at `/console`; `off`: this server has no console, and takes no sessions.',
    default: 'on',
    'x-argument': '<on|off>',
  }),
  operator_login: oneOf(['on', 'off'], {
    description:
      '`on`: operators log in with the command, which their browser allows; `off`: no command acts as an operator. Always off where `console` is.',
    default: 'on',
    'x-argument': '<on|off>',
    'x-shared': true,
  }),
  revoke_undelivered: flag({
    description: 'Revoke a credential if the caller disconnects before the response is written.',
    default: true,
    'x-shared': true,
  }),
  log_level: oneOf(['debug', 'info', 'warn', 'error'], {
    description: 'Lowest level to log.',
    default: 'info',
    'x-argument': '<level>',
    'x-reload': true,
  }),
  log_format: oneOf(['json', 'pretty'], {
    description: '`json`: one JSON object per line; `pretty`: lines for people.',
    default: 'json',
    'x-argument': '<json|pretty>',
  }),
  access_log: flag({ description: 'Log every request.', default: false, 'x-argument': '[true|false]' }),
  shutdown_timeout: duration(
    {
      description: 'Time that open requests have to finish after SIGTERM, at most 11m.',
      'x-default': 'twice `upstream_timeout`, and 15s',
      'x-argument': '<duration>',
    },
    between(1, 11 * MINUTE_MS),
  ),
  upstream_timeout: duration(
    {
      description:
        'Time limit of one call to an upstream, 100ms to 5m. A reply may take twice as long and 15s: a proxy must wait for it.',
      default: formatDuration(UPSTREAM_TIMEOUT_MS),
      'x-argument': '<duration>',
      'x-shared': true,
    },
    between(100, 5 * MINUTE_MS),
  ),
  quickstart: flag({
    description: 'Create a backend and an agent to try the server with, as `npm start` does.',
    default: false,
    'x-argument': '',
    'x-sources': ['flag'],
  }),
}

const limits = {
  'limits.token_failures_per_minute': count({
    description: 'Failed logins at `/oauth/*` per minute, client and address; ten times as many per address.',
    default: TOKEN_FAILURES_PER_MINUTE,
    'x-reload': true,
    'x-shared': true,
  }),
  'limits.tokens_per_minute': count({
    description: 'Access tokens that one agent may get per minute, and that it may revoke.',
    default: TOKENS_PER_MINUTE,
    'x-reload': true,
    'x-shared': true,
  }),
  'limits.enrollments_per_minute': count({
    description: 'Enrollment requests per minute and address.',
    default: ENROLLMENTS_PER_MINUTE,
    'x-reload': true,
    'x-shared': true,
  }),
  'limits.max_pending_enrollments': count({
    description:
      'Enrollments that may wait for a decision at once, a quarter of them from one network; and, apart from these, requests of agents for more scopes.',
    default: MAX_PENDING_ENROLLMENTS,
    'x-reload': true,
    'x-shared': true,
  }),
  'limits.max_active_per_agent': count({
    description:
      'Active credentials per agent. Nodes count at least every ten seconds, so n nodes may together admit up to n times as many.',
    default: MAX_ACTIVE_PER_AGENT,
    'x-reload': true,
    'x-shared': true,
  }),
  'limits.issue_rate': text(
    {
      description: 'Credentials issued per agent, such as `100/minute`.',
      'x-default': 'no limit',
      'x-reload': true,
      'x-shared': true,
    },
    parseConfigRate,
  ),
  'limits.max_connections': count({
    description: 'Open connections to the server.',
    default: 10_000,
    'x-reload': true,
  }),
}

/**
 * Every setting by its name in the file; those of `limits` and `runs` with their dotted path. Each says whether a reload applies it
 * (`x-reload`): what applies it is a part of `app/reload.ts`.
 */
export const SETTINGS = { ...network, ...storage, ...behaviour, ...limits, ...runs, ...ENTRIES }
