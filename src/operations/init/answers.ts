import { readFile, stat } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import { CliError, usage } from '../../cli/frame/failure.ts'
import { flag, many, text, type ValuesOf } from '../../cli/frame/options.ts'
import { ask, askSecret } from '../../cli/frame/prompt.ts'
import type { Context } from '../../cli/frame/verb.ts'
import { SYSTEM_DATA_DIR } from '../../cli/session/local-server.ts'
import { isPresent } from '../../cli/session/private-file.ts'
import { givenOf } from '../../cli/session/session.ts'
import { FIELDS, type FieldPath } from '../../config/schema.ts'
import { requireName } from '../../domain/agent.ts'
import { SYSTEM_CONFIG } from './installation.ts'

export const INIT_OPTIONS = {
  config: text('<file>', `file to write [default: ${SYSTEM_CONFIG}; env: MAYFLY_CONFIG]`),
  issuer: text('<url>', 'public address of the server [default: this machine only]'),
  listen: text('<host:port>', 'address to listen on [default: follows from the others]'),
  tlsCertFile: text('<path>', 'certificate, PEM, for TLS by Mayfly itself'),
  tlsKeyFile: text('<path>', 'its private key, PEM'),
  trustedProxy: many(
    '<cidr>',
    'a proxy in front of the server, which does TLS; may be repeated [default: 127.0.0.1/32]',
  ),
  databaseUrlFile: text('<path>', 'file with a PostgreSQL URL, for a store in PostgreSQL [default: SQLite]'),
  masterKeyFile: text(
    '<path>',
    'file of the master key; made if it does not exist [default: master.key beside the configuration]',
  ),
  admin: text('<name>', 'name of the first administrator [default: operator]'),
  yes: flag('ask nothing: take the default of every option that is left out'),
}

type InitOptions = ValuesOf<typeof INIT_OPTIONS>

/** What a new installation needs. */
export interface Answers {
  readonly configFile: string
  readonly before: Before
  readonly settings: Settings
  /** The content of a new `database_url_file`. */
  readonly databaseUrl: string | undefined
  readonly admin: string
}

/** In the form of the configuration file, in its order. */
interface Settings {
  readonly listen: string
  readonly issuer: string
  readonly tls_cert_file?: string
  readonly tls_key_file?: string
  readonly trusted_proxies?: readonly string[]
  readonly data_dir: string
  readonly database_url_file?: string
  readonly master_key_file: string
}

const LISTEN = '127.0.0.1:8620'

/** Asks for what no option says; with --yes it takes the default instead. Throws `CliError`. */
export async function answer(context: Context, options: InitOptions): Promise<Answers> {
  const { env, globals } = context
  const path = (given: string) => resolve(context.cwd, given)
  const configFile = path(options.config ?? givenOf(env['MAYFLY_CONFIG']) ?? SYSTEM_CONFIG)
  const beside = (name: string) => join(dirname(configFile), name)
  const before = await readBefore(configFile)
  const dataDir = path(
    globals.dataDir ?? givenOf(env['MAYFLY_DATA_DIR']) ?? before.dataDir ?? SYSTEM_DATA_DIR,
  )
  const questions = createQuestions(context, options.yes === true)

  const issuer = await questions.text('issuer', options.issuer, {
    question: 'Public address of the server',
    preset: `http://${options.listen ?? before.listen ?? LISTEN}`,
  })
  const tls = await askForTls(questions, options, issuer, path)
  const listen = await questions.text('listen', options.listen ?? before.listen, {
    question: 'Address to listen on',
    preset: listenFor(issuer, tls),
  })
  const database = await askForDatabase(context, questions, options, beside('database.url'))
  const masterKeyFile = await questions.text('master_key_file', options.masterKeyFile, {
    question: 'File of the master key, apart from the data',
    preset: (await isPresent(join(dataDir, 'master.key')))
      ? join(dataDir, 'master.key')
      : beside('master.key'),
  })
  const admin = await questions.checked(options.admin, requireAgentName, {
    question: 'Name of the first administrator',
    preset: 'operator',
  })
  return {
    configFile,
    before,
    settings: {
      listen,
      issuer,
      ...tls,
      data_dir: dataDir,
      ...(database.file === undefined ? {} : { database_url_file: path(database.file) }),
      master_key_file: path(masterKeyFile),
    },
    databaseUrl: database.url,
    admin,
  }
}

type Tls = Pick<Settings, 'tls_cert_file' | 'tls_key_file' | 'trusted_proxies'>

/** A public address needs TLS, which the server or a proxy in front of it provides. */
async function askForTls(
  questions: Questions,
  { tlsCertFile, tlsKeyFile, trustedProxy }: InitOptions,
  issuer: string,
  path: (given: string) => string,
): Promise<Tls> {
  const isServed = tlsCertFile !== undefined || tlsKeyFile !== undefined
  const by =
    isServed || trustedProxy !== undefined || !issuer.startsWith('https:')
      ? undefined
      : await questions.oneOf('TLS by Mayfly itself, or by a proxy in front of it', ['proxy', 'mayfly'])
  if (isServed || by === 'mayfly') {
    const cert = await questions.text('tls_cert_file', tlsCertFile, { question: 'Certificate file (PEM)' })
    const key = await questions.text('tls_key_file', tlsKeyFile, { question: 'Its private key file (PEM)' })
    return { tls_cert_file: path(cert), tls_key_file: path(key) }
  }
  if (trustedProxy !== undefined) return { trusted_proxies: trustedProxy }
  if (by === undefined) return {}
  const proxy = await questions.text('trusted_proxies', undefined, {
    question: 'Address or network of the proxy',
    preset: '127.0.0.1/32',
  })
  return { trusted_proxies: [proxy] }
}

/** Where to listen for the public address, if nothing else is said. */
export function listenFor(issuer: string, tls: Tls): string {
  const { protocol, port, host } = URL.canParse(issuer) ? new URL(issuer) : new URL('http://localhost')
  if (tls.tls_cert_file !== undefined) return `0.0.0.0:${port || '443'}`
  return protocol === 'http:' && port !== '' ? host : LISTEN
}

async function askForDatabase(
  context: Context,
  questions: Questions,
  { databaseUrlFile }: InitOptions,
  preset: string,
): Promise<{ file: string | undefined; url: string | undefined }> {
  if (databaseUrlFile !== undefined) return { file: databaseUrlFile, url: undefined }
  const store = await questions.oneOf('Store: SQLite in one directory, or PostgreSQL', [
    'sqlite',
    'postgresql',
  ])
  if (store === 'sqlite') return { file: undefined, url: undefined }
  const question = 'File with the database URL'
  const file = resolve(
    context.cwd,
    await questions.text('database_url_file', undefined, { question, preset }),
  )
  if (await isPresent(file)) return { file, url: undefined }
  for (;;) {
    const url = await askSecret(context, 'Database URL (postgres://…, not shown): ')
    const fault = faultOf('database_url', url)
    if (fault === undefined) return { file, url }
    context.out.note(fault)
  }
}

interface Question {
  readonly question: string
  readonly preset?: string
}

interface Questions {
  /** The text of a setting. */
  text(path: FieldPath, given: string | undefined, about: Question): Promise<string>
  /** Text that `check` accepts; it returns what is wrong. */
  checked(
    given: string | undefined,
    check: (text: string) => string | undefined,
    about: Question,
  ): Promise<string>
  /** The first one is the default. */
  oneOf(question: string, choices: readonly [string, ...string[]]): Promise<string>
}

function createQuestions(context: Context, takesDefaults: boolean): Questions {
  const checked: Questions['checked'] = async (given, check, { question, preset }) => {
    if (given !== undefined) {
      const fault = check(given)
      if (fault !== undefined) throw usage(`${question}: ${fault}.`)
      return given
    }
    if (takesDefaults && preset !== undefined) return preset
    const shown = preset === undefined ? `${question}: ` : `${question} [${preset}]: `
    const otherwise = 'Take the defaults with --yes, or set it with its option: see --help.'
    for (;;) {
      const text = await ask(context, shown, { otherwise, default: preset })
      const fault = text === '' ? 'is needed' : check(text)
      if (fault === undefined) return text
      context.out.note(`${question}: ${fault}.`)
    }
  }
  return {
    checked,
    text: (path, given, about) => checked(given, (text) => faultOf(path, text), about),
    oneOf: (question, choices) =>
      checked(undefined, (text) => (choices.includes(text) ? undefined : `choose ${choices.join(' or ')}`), {
        question: `${question} (${choices.join(', ')})`,
        preset: choices[0],
      }),
  }
}

/** What the server would say of this value; undefined if it accepts it. */
function faultOf(path: FieldPath, text: string): string | undefined {
  const field = FIELDS.find((one) => one.path === path)
  const isList = (field?.schema as { type?: string } | undefined)?.type === 'array'
  try {
    field?.parse((isList ? [text] : text) as never, (fault) => {
      throw fault
    })
    return undefined
  } catch (error) {
    if (error instanceof Error && error.name === 'InvalidValue') return error.message
    throw error
  }
}

function requireAgentName(name: string): string | undefined {
  try {
    requireName(name, 'name')
    return undefined
  } catch (error) {
    return error instanceof Error ? error.message.replace(/\.$/, '') : String(error)
  }
}

/** The configuration file as it is. */
export interface Before {
  /** Empty if there is no file. */
  readonly text: string
  /** What the package sets for every installation. */
  readonly listen: string | undefined
  readonly dataDir: string | undefined
  /** Undefined if there is no file. */
  readonly facts: { readonly mode: number; readonly uid: number; readonly gid: number } | undefined
}

const OF_THE_PACKAGE = ['listen', 'data_dir']

/** Throws `CliError` for a file that somebody has filled in, and `ConfigError` for one that is no YAML. */
export async function readBefore(file: string): Promise<Before> {
  const bytes = await readFile(file).catch((error: { code?: string }) => {
    if (error.code === 'ENOENT') return undefined
    throw error
  })
  if (bytes === undefined) return { text: '', listen: undefined, dataDir: undefined, facts: undefined }
  const { parseConfigText } = await import('../../files/yaml-file.ts')
  const text = bytes.toString('utf8')
  const { value } = parseConfigText(file, text)
  if (Object.keys(value).some((key) => !OF_THE_PACKAGE.includes(key)))
    throw new CliError('configured', `${file} has settings already, and is unchanged.`, {
      hint: 'Edit it and restart the server, or choose another file with --config.',
    })
  const { mode, uid, gid } = await stat(file)
  return {
    text,
    listen: textOf(value['listen']),
    dataDir: textOf(value['data_dir']),
    facts: { mode, uid, gid },
  }
}

const textOf = (value: unknown) => (typeof value === 'string' ? value : undefined)
