import { ConfigError, type Fault, InvalidValue } from '../domain/fault.ts'
import { shellWord } from '../domain/formats/shell-word.ts'
import { longestRequest } from '../domain/limits.ts'
import { Secret } from '../domain/secret.ts'
import { type ReadFile, readSecret } from '../files/read-secret.ts'
import type { Config, MasterKeySource, Values } from './config.ts'
import { type ReadFiles, readConfigFiles } from './config-files.ts'
import { readReceivers } from './notify.ts'
import { soundForm } from './policies.ts'
import { CONFIG_ENV, CONFIG_FLAG, FIELDS, type Field, type FieldPath } from './schema.ts'
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
import { readSso } from './sso.ts'
import { readTrusted } from './trusted.ts'
import { defaultSigningDomain, hasPassword, parseDatabaseUrl } from './values.ts'

export interface LoadOptions extends ReadFiles {
  /** By camel-case name. */
  readonly argv: Flags
  readonly env: Environment
}

export interface Loaded {
  readonly config: Config
  /** By dotted field: `flag --listen`, `environment MAYFLY_LISTEN`, `file:line:col`, `default` or `derived`. */
  readonly origins: Record<string, string>
  /** By dotted field, in the form of the file: what the winning source gave, or else the default. Contains secrets. */
  readonly given: Readonly<Record<string, unknown>>
}

/** Flag > environment > `conf.d` > file > default. Throws one `ConfigError` with every fault of every source. */
export async function loadConfig(options: LoadOptions): Promise<Loaded> {
  const faults: Fault[] = []
  const gathered = [
    gatherFlags(options.argv),
    gatherEnvironment(options.env),
    ...(await gatherYaml(options, faults)),
  ]
  faults.push(...gathered.flatMap((one) => one.faults))
  const entries = gathered.flatMap((one) => one.entries)
  const sound = entries.flatMap((entry) => {
    const found = checkShape(entry)
    faults.push(...found)
    if (found.length === 0) return [entry]
    // What is sound in the policies is checked too, so that all their faults are reported together.
    return entry.field.path === 'policies' ? [{ ...entry, wire: soundForm(entry.wire) }] : []
  })
  const reader = createReader(sound, new Set(entries.map(({ field }) => field.path)), faults)
  const config = await buildConfig(reader, options)
  if (faults.length > 0) throw new ConfigError(faults)
  const given = Object.fromEntries(
    FIELDS.map(({ path, default: preset }) => [path, reader.entry(path)?.wire ?? preset]),
  )
  return { config, origins: reader.origins, given }
}

async function gatherYaml(options: LoadOptions, faults: Fault[]): Promise<Gathered[]> {
  const flag = options.argv[CONFIG_FLAG]
  const file = flag ?? options.env[CONFIG_ENV]
  const origin = flag === undefined ? `environment ${CONFIG_ENV}` : `flag --${CONFIG_FLAG}`
  if (file === undefined) return []
  if (typeof file !== 'string' || file === '') {
    faults.push({ source: origin, message: 'does not name a file' })
    return []
  }
  try {
    return (await readConfigFiles(file, origin, options)).map(gatherFile)
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    const next = `. Run: mayfly init --config ${shellWord(file)}`
    faults.push(
      ...error.faults.map(({ source, message }) => ({
        source,
        message: message.endsWith(' does not exist') ? message + next : message,
      })),
    )
    return []
  }
}

interface Reader {
  readonly origins: Record<string, string>
  /** Whether any source has it, valid or not. */
  given(path: FieldPath): boolean
  entry(path: FieldPath): Entry | undefined
  /** `inner`: the place inside the value. */
  fault(path: FieldPath, message: string, inner?: readonly (string | number)[]): void
  /** The parsed value of the first source, or of the default. Values of the other sources are checked too. */
  value(field: Field): unknown
}

function createReader(entries: readonly Entry[], given: ReadonlySet<string>, faults: Fault[]): Reader {
  const origins: Record<string, string> = {}
  for (const { path, default: preset } of FIELDS) origins[path] = preset === undefined ? 'derived' : 'default'
  for (const entry of [...entries].reverse()) origins[entry.field.path] = entry.locate()
  const of = (path: string) => entries.filter(({ field }) => field.path === path)
  const parse = ({ field, wire, locate }: Pick<Entry, 'field' | 'wire' | 'locate'>): unknown => {
    const report = ({ path, message }: InvalidValue) => {
      faults.push({ source: locate(path), message: `${[field.path, ...path].join('.')}: ${message}` })
    }
    try {
      return field.parse(wire as never, report)
    } catch (error) {
      if (!(error instanceof InvalidValue)) throw error
      report(error)
      return undefined
    }
  }
  return {
    origins,
    given: (path) => given.has(path),
    entry: (path) => of(path)[0],
    fault: (path, message, inner = []) => {
      const source = of(path)[0]?.locate(inner) ?? 'default'
      faults.push({ source, message: `${[path, ...inner].join('.')}: ${message}` })
    },
    value: (field) => {
      const [winner] = of(field.path).map(parse)
      if (winner !== undefined || field.default === undefined) return winner
      return parse({ field, wire: field.default, locate: () => 'default' })
    },
  }
}

async function buildConfig(reader: Reader, { readFile, env }: LoadOptions): Promise<Config> {
  const values = Object.fromEntries(FIELDS.map((field) => [field.name, reader.value(field)])) as Values
  const { tlsCertFile, tlsKeyFile, databaseUrlFile, masterKeyFile, masterKeyCommand, ...others } = values
  const tls = combineTls(reader, tlsCertFile, tlsKeyFile)
  // Not `localhost`, which another user's listener on ::1 may answer.
  const own = values.listen.host === '::1' ? '[::1]' : '127.0.0.1'
  const issuer = values.issuer ?? `${tls === undefined ? 'http' : 'https'}://${own}:${values.listen.port}`
  return {
    ...others,
    tls,
    issuer,
    signingDomain: values.signingDomain ?? defaultSigningDomain(issuer),
    shutdownTimeoutMs: values.shutdownTimeoutMs ?? longestRequest(values.upstreamTimeoutMs),
    pluginEnv: chosen(env, values.pluginEnv),
    pluginDir: values.pluginDir ?? inDataDir(values, 'plugins'),
    databaseUrl: await readDatabaseUrl(reader, values, readFile),
    masterKey: chooseMasterKey(reader, values),
    notify: await readReceivers(values.notify, readFile, placedIn(reader, 'notify')),
    sso: await readSso(values.sso, readFile, placedIn(reader, 'sso')),
    ...(await readTrusted(values, [issuer, ...values.previousIssuers], readFile, (list, ...fault) =>
      placedIn(reader, list)(...fault),
    )),
  }
}

/** Faults of one entry of a list, which its name places. */
function placedIn(reader: Reader, path: 'notify' | 'sso' | 'identities' | 'platforms') {
  const wire = reader.entry(path)?.wire
  const names = Array.isArray(wire) ? wire.map((one: { readonly name: string }) => one.name) : []
  return (name: string, inner: readonly (string | number)[], message: string) =>
    reader.fault(path, message, [names.indexOf(name), ...inner])
}

function combineTls(
  reader: Reader,
  certFile: string | undefined,
  keyFile: string | undefined,
): Config['tls'] {
  if (reader.given('tls_cert_file') !== reader.given('tls_key_file')) {
    const [have, lacks] = reader.given('tls_cert_file')
      ? (['tls_cert_file', 'tls_key_file'] as const)
      : (['tls_key_file', 'tls_cert_file'] as const)
    reader.fault(have, `requires ${lacks} as well`)
  }
  return certFile === undefined || keyFile === undefined ? undefined : { certFile, keyFile }
}

async function readDatabaseUrl(
  reader: Reader,
  { databaseUrl: url, databaseUrlFile: file }: Values,
  readFile: ReadFile,
): Promise<Secret | undefined> {
  const entry = reader.entry('database_url')
  if (entry?.kind === 'flag' && hasPassword(String(entry.wire))) {
    reader.fault(
      'database_url',
      'contains a password, which every user of this host could read; use MAYFLY_DATABASE_URL or --database-url-file',
    )
  }
  if (reader.given('database_url') && reader.given('database_url_file')) {
    reader.fault('database_url_file', 'database_url is also set; keep one of them')
    return undefined
  }
  if (url !== undefined) return new Secret(url)
  if (file === undefined) return undefined
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

function chooseMasterKey(reader: Reader, values: Values): MasterKeySource {
  const { masterKey: text, masterKeyCommand: argv, masterKeyFile } = values
  const ways = (['master_key_file', 'master_key', 'master_key_command'] as const).filter(reader.given)
  const [first, second] = ways
  if (first !== undefined && second !== undefined) {
    reader.fault(second, `${first} is also set; keep one of them`)
  }
  if (text !== undefined) return { from: 'environment', text }
  if (argv !== undefined) return { from: 'command', argv }
  return { from: 'file', file: masterKeyFile ?? inDataDir(values, 'master.key') }
}

const inDataDir = ({ dataDir }: Values, name: string) => `${dataDir.replace(/(?<=.)\/+$/, '')}/${name}`

const chosen = (env: Environment, names: readonly string[]) =>
  Object.fromEntries(
    names.flatMap((name) => (env[name] === undefined ? [] : [[name, new Secret(env[name])] as const])),
  )
