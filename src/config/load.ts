import { DAY_MS, HOUR_MS, MINUTE_MS } from '../domain/limits.ts'
import { Secret } from '../domain/secret.ts'
import type { Config, MasterKeySource } from './config.ts'
import { ConfigError, type Fault, InvalidValue } from './fault.ts'
import { compilePolicies } from './policies.ts'
import { type ReadFile, readSecret } from './read-secret.ts'
import { CONFIG_ENV, CONFIG_FLAG, FIELDS, type FieldPath, type Wire } from './schema.ts'
import {
  checkShape,
  type Entry,
  type Environment,
  type Flags,
  type Gathered,
  gatherEnvironment,
  gatherFile,
  gatherFlags,
} from './sources.ts'
import {
  defaultSigningDomain,
  hasPassword,
  parseAudience,
  parseBoundedDuration,
  parseCidr,
  parseCommand,
  parseConfigRate,
  parseDatabaseUrl,
  parseDomain,
  parseIssuer,
  parseListen,
  parsePath,
  parseSocketPath,
} from './values.ts'
import { readConfigFile } from './yaml-file.ts'

export interface LoadOptions {
  /** By camel-case name. */
  readonly argv: Flags
  readonly env: Environment
  readonly readFile: ReadFile
}

export interface Loaded {
  readonly config: Config
  /** By dotted field: `flag --listen`, `environment MAYFLY_LISTEN`, `file:line:col`, `default` or `derived`. */
  readonly origins: Record<string, string>
}

/** Flag > environment > file > default. Throws one `ConfigError` with every fault of every source. */
export async function loadConfig(options: LoadOptions): Promise<Loaded> {
  const faults: Fault[] = []
  const gathered = [
    gatherFlags(options.argv),
    gatherEnvironment(options.env),
    await gatherYaml(options, faults),
  ]
  faults.push(...gathered.flatMap((one) => one.faults))
  const entries = gathered.flatMap((one) => one.entries)
  const sound = entries.filter((entry) => {
    const found = checkShape(entry)
    faults.push(...found)
    return found.length === 0
  })
  const reader = createReader(sound, new Set(entries.map(({ field }) => field.path)), faults)
  const config = await buildConfig(reader, options.readFile)
  if (faults.length > 0) throw new ConfigError(faults)
  return { config, origins: reader.origins }
}

async function gatherYaml(options: LoadOptions, faults: Fault[]): Promise<Gathered> {
  const flag = options.argv[CONFIG_FLAG]
  const file = flag ?? options.env[CONFIG_ENV]
  const origin = flag === undefined ? `environment ${CONFIG_ENV}` : `flag --${CONFIG_FLAG}`
  if (file === undefined) return { entries: [], faults: [] }
  if (typeof file !== 'string' || file === '') {
    faults.push({ source: origin, message: 'names no file' })
    return { entries: [], faults: [] }
  }
  try {
    return gatherFile(await readConfigFile(file, origin, options.readFile))
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    faults.push(...error.faults)
    return { entries: [], faults: [] }
  }
}

interface Reader {
  readonly origins: Record<string, string>
  /** Whether any source gave it, sound or not. */
  given(path: FieldPath): boolean
  entry(path: FieldPath): Entry | undefined
  fault(path: FieldPath, message: string): void
  /** The value that wins, converted; those that lose are checked too. `undefined` when not given or at fault. */
  optional<K extends FieldPath, T>(path: K, convert: (wire: Wire[K]) => T): T | undefined
  /** As `optional`, for fields with a default. */
  read<K extends FieldPath, T>(path: K, convert: (wire: Wire[K]) => T): T
  /** Runs a conversion, keeping its fault. */
  attempt<T>(locate: Entry['locate'], path: FieldPath, convert: () => T): { value: T } | undefined
}

function createReader(entries: readonly Entry[], given: ReadonlySet<string>, faults: Fault[]): Reader {
  const origins: Record<string, string> = {}
  for (const { path, default: preset } of FIELDS) origins[path] = preset === undefined ? 'derived' : 'default'
  for (const entry of [...entries].reverse()) origins[entry.field.path] = entry.locate()
  const of = (path: string) => entries.filter(({ field }) => field.path === path)
  const attempt: Reader['attempt'] = (locate, path, convert) => {
    try {
      return { value: convert() }
    } catch (error) {
      if (!(error instanceof InvalidValue)) throw error
      const name = [path, ...error.path].join('.')
      faults.push({ source: locate(error.path), message: `${name}: ${error.message}` })
      return undefined
    }
  }
  const optional: Reader['optional'] = (path, convert) => {
    const results = of(path).map((entry) =>
      attempt(entry.locate, path, () => convert(entry.wire as Wire[typeof path])),
    )
    return results[0]?.value
  }
  return {
    origins,
    attempt,
    optional,
    given: (path) => given.has(path),
    entry: (path) => of(path)[0],
    fault: (path, message) => {
      faults.push({ source: of(path)[0]?.locate() ?? 'default', message: `${path}: ${message}` })
    },
    read: (path, convert) => {
      const found = optional(path, convert)
      if (found !== undefined) return found
      const preset = FIELDS.find((field) => field.path === path)?.default
      return convert(preset as Wire[typeof path])
    },
  }
}

const asIs = <T>(value: T): T => value
const between = (least: number, most: number) => (text: string) => parseBoundedDuration(text, least, most)

/** Each element converted, its fault placed at the element. */
function each<T>(convert: (text: string) => T): (list: string[]) => T[] {
  return (list) =>
    list.map((text, index) => {
      try {
        return convert(text)
      } catch (error) {
        if (error instanceof InvalidValue) throw new InvalidValue(error.message, [index])
        throw error
      }
    })
}

async function buildConfig(reader: Reader, readFile: ReadFile): Promise<Config> {
  const { read, optional } = reader
  const listen = read('listen', parseListen)
  const tls = readTls(reader)
  const issuer =
    optional('issuer', parseIssuer) ?? `${tls === undefined ? 'http' : 'https'}://localhost:${listen.port}`
  const dataDir = read('data_dir', parsePath)
  return {
    listen,
    tls,
    issuer,
    dataDir,
    unixSocket: optional('unix_socket', parseSocketPath),
    localAdmin: read('local_admin', asIs),
    trustedProxies: read('trusted_proxies', each(parseCidr)),
    databaseUrl: await readDatabaseUrl(reader, readFile),
    masterKey: readMasterKeySource(reader, dataDir),
    retentionMs: read('retention', (text) =>
      text === 'forever' ? 0 : parseBoundedDuration(text, DAY_MS, 36_500 * DAY_MS),
    ),
    signingDomain: optional('signing_domain', parseDomain) ?? defaultSigningDomain(issuer),
    signingIdentity: read('signing_identity', asIs),
    signingKeyExport: read('signing_key_export', asIs),
    accessTokenTtlMs: read('access_token_ttl', readTokenTtl),
    audiences: read('audiences', each(parseAudience)),
    policies: readPolicies(reader),
    limits: {
      tokenFailuresPerMinute: read('limits.token_failures_per_minute', asIs),
      enrollmentsPerMinute: read('limits.enrollments_per_minute', asIs),
      maxPendingEnrollments: read('limits.max_pending_enrollments', asIs),
      maxActivePerAgent: read('limits.max_active_per_agent', asIs),
      issueRate: optional('limits.issue_rate', parseConfigRate),
      maxConnections: read('limits.max_connections', asIs),
    },
    issueByGet: read('issue_by_get', asIs),
    revokeUndelivered: read('revoke_undelivered', asIs),
    logLevel: read('log_level', asIs),
    logFormat: read('log_format', asIs),
    accessLog: read('access_log', asIs),
    shutdownTimeoutMs: read('shutdown_timeout', between(1, 10 * MINUTE_MS)),
    upstreamTimeoutMs: read('upstream_timeout', between(100, 5 * MINUTE_MS)),
    quickstart: read('quickstart', asIs),
  }
}

/** `expires_in` is whole seconds (RFC 6749 §5.1). */
function readTokenTtl(text: string): number {
  const value = parseBoundedDuration(text, 1_000, 24 * HOUR_MS)
  if (value % 1_000 !== 0) throw new InvalidValue('must be whole seconds')
  return value
}

function readTls(reader: Reader): Config['tls'] {
  const certFile = reader.optional('tls_cert_file', parsePath)
  const keyFile = reader.optional('tls_key_file', parsePath)
  if (reader.given('tls_cert_file') !== reader.given('tls_key_file')) {
    const [have, lacks] = reader.given('tls_cert_file')
      ? (['tls_cert_file', 'tls_key_file'] as const)
      : (['tls_key_file', 'tls_cert_file'] as const)
    reader.fault(have, `needs ${lacks} as well`)
  }
  return certFile === undefined || keyFile === undefined ? undefined : { certFile, keyFile }
}

async function readDatabaseUrl(reader: Reader, readFile: ReadFile): Promise<Secret | undefined> {
  const url = reader.optional('database_url', parseDatabaseUrl)
  const file = reader.optional('database_url_file', parsePath)
  const entry = reader.entry('database_url')
  if (entry?.kind === 'flag' && hasPassword(String(entry.wire))) {
    reader.fault(
      'database_url',
      'holds a password, which every user of this host could read; use MAYFLY_DATABASE_URL or --database-url-file',
    )
  }
  if (reader.given('database_url') && reader.given('database_url_file')) {
    reader.fault('database_url_file', 'database_url is given too; keep one of them')
    return undefined
  }
  if (url !== undefined) return new Secret(url)
  const from = reader.entry('database_url_file')
  if (file === undefined || from === undefined) return undefined
  try {
    const text = await readSecret(file, readFile)
    parseDatabaseUrl(text.reveal())
    return text
  } catch (error) {
    if (!(error instanceof InvalidValue)) throw error
    reader.fault('database_url_file', error.message)
    return undefined
  }
}

function readMasterKeySource(reader: Reader, dataDir: string): MasterKeySource {
  const file = reader.optional('master_key_file', parsePath)
  const text = reader.optional('master_key', asIs)
  const argv = reader.optional('master_key_command', parseCommand)
  const ways = (['master_key_file', 'master_key', 'master_key_command'] as const).filter(reader.given)
  const [first, second] = ways
  if (first !== undefined && second !== undefined) {
    reader.fault(second, `${first} is given too; keep one of them`)
  }
  if (text !== undefined) return { from: 'environment', text: new Secret(text) }
  if (argv !== undefined) return { from: 'command', argv }
  return { from: 'file', file: file ?? `${dataDir.replace(/(?<=.)\/+$/, '')}/master.key` }
}

function readPolicies(reader: Reader): Config['policies'] {
  const entry = reader.entry('policies')
  return reader.read('policies', (list) =>
    compilePolicies(list, (fault) => {
      reader.attempt(entry?.locate ?? (() => 'default'), 'policies', () => {
        throw fault
      })
    }),
  )
}
