import { spawnSync } from 'node:child_process'
import { access, chown, constants, lchown, mkdir, readFile, stat } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { CliError, systemReason } from '../../cli/frame/failure.ts'
import type { Context } from '../../cli/frame/verb.ts'
import { isPresent, writePrivateFile } from '../../cli/session/private-file.ts'
import { shellWord } from '../../domain/formats/shell-word.ts'
import { isLoopbackHost } from '../../domain/network/loopback.ts'
import { type Answers, listenFor } from './answers.ts'

/** The account that runs the server. */
export interface Account {
  readonly uid: number
  readonly gid: number
  readonly name: string
}

export interface Written {
  readonly account: Account
  /** In the order of their making. */
  readonly files: readonly string[]
}

const HEADING = '# Made by `mayfly init`. All settings: mayfly server --help'

/**
 * Checks the answers as a starting server would, then writes the master key, the URL of the database and the
 * configuration. Changes no line of the file that is there. Throws `CliError` or `ConfigError`.
 */
export async function write(context: Context, answers: Answers): Promise<Written> {
  const { settings, configFile, databaseUrl, before } = answers
  const account = await accountFor(settings.data_dir)
  const text = await textFor(answers)
  await check(context, answers, text, account)
  await writable(dirname(configFile))
  await makeDataDir(settings.data_dir, account)
  const files: string[] = []
  if (await makeMasterKey(answers)) files.push(settings.master_key_file)
  if (databaseUrl !== undefined && settings.database_url_file !== undefined) {
    await writable(dirname(settings.database_url_file))
    await writePrivateFile(settings.database_url_file, `${databaseUrl}\n`, 0o400)
    files.push(settings.database_url_file)
  }
  if (process.getuid?.() === 0) for (const file of files) await lchown(file, account.uid, account.gid)
  await writePrivateFile(configFile, text, before.facts === undefined ? 0o644 : before.facts.mode & 0o777)
  if (before.facts !== undefined && process.getuid?.() === 0)
    await chown(configFile, before.facts.uid, before.facts.gid)
  return { account, files: [...files, configFile] }
}

/** Adds to the file what it does not say yet; its lines and comments stay. */
async function textFor({ configFile, before, settings }: Answers): Promise<string> {
  const present: Readonly<Record<string, string | undefined>> = {
    listen: before.listen,
    data_dir: before.dataDir,
  }
  const added = Object.entries(settings).filter(([name, value]) => {
    const there = present[name]
    if (there !== undefined && there !== value)
      throw new CliError('configured', `${configFile} sets ${name} to ${there}, and is unchanged.`, {
        hint: 'Remove the line, or leave out the option.',
      })
    return there === undefined
  })
  const { stringify } = await import('yaml')
  const start = before.text.trim() === '' ? '' : `${before.text.trimEnd()}\n\n`
  return `${start}${HEADING}\n${stringify(Object.fromEntries(added))}`
}

async function check(context: Context, answers: Answers, text: string, account: Account) {
  const { configFile, databaseUrl, settings } = answers
  const { loadConfig } = await import('../../config/load.ts')
  await loadConfig({
    argv: { config: configFile },
    env: {},
    readFile: async (path) => {
      if (path === configFile) return Buffer.from(text)
      if (path === settings.database_url_file && databaseUrl !== undefined) return Buffer.from(databaseUrl)
      return readFile(path)
    },
  })
  for (const file of [settings.tls_cert_file, settings.tls_key_file]) {
    if (file === undefined) continue
    const fault = await whyUnreadable(file, account)
    if (fault !== undefined) context.out.note(`mayfly: warning: ${fault}`)
  }
  const wanted = unreachable(answers)
  if (wanted !== undefined)
    context.out.note(
      `mayfly: warning: ${configFile} sets listen to ${settings.listen}, which no other machine reaches. Change the line to ${wanted} before you start the server.`,
    )
}

/** Where the server is to end TLS for a public address, and a line of the file keeps it to this machine: where to listen instead. */
function unreachable({ settings, before }: Answers): string | undefined {
  const isPublic = settings.tls_cert_file !== undefined && !isLoopbackHost(new URL(settings.issuer).hostname)
  if (!isPublic || before.listen === undefined) return undefined
  return isLoopbackHost(new URL(`http://${before.listen}`).hostname)
    ? listenFor(settings.issuer, settings)
    : undefined
}

/** What to do about a file that the account of the server cannot read. */
async function whyUnreadable(file: string, { name, uid, gid }: Account): Promise<string | undefined> {
  const reason = await access(file, constants.R_OK).then(
    () => undefined,
    (error: unknown) => systemReason(error) ?? 'it cannot be read',
  )
  if (reason !== undefined) return `${file}: ${reason}. Put it there before you start the server.`
  if (process.getuid?.() !== 0 || uid === 0) return undefined
  // Only a login of the account has its groups: Debian's ssl-cert lets many read keys.
  const { status } = spawnSync('runuser', ['-u', name, '--', 'test', '-r', file])
  if (status !== 1) return undefined
  return `${file}: the user ${name}, which runs the server, cannot read it. Let it: chgrp ${gid} ${shellWord(file)} && chmod g+r ${shellWord(file)}, and x on the directories above.`
}

/** Makes the directory, or says what to run instead. */
async function writable(directory: string): Promise<void> {
  try {
    await mkdir(directory, { recursive: true, mode: 0o755 })
    await access(directory, constants.W_OK)
  } catch (cause) {
    throw new CliError(
      'not_written',
      `${directory} cannot be written: ${systemReason(cause) ?? String(cause)}.`,
      {
        hint: 'Run it as root: sudo mayfly init. Or choose another place with --config and --data-dir.',
        cause,
      },
    )
  }
}

async function makeDataDir(directory: string, { uid, gid }: Account): Promise<void> {
  if (await isPresent(directory)) return
  await writable(dirname(directory))
  await mkdir(directory, { mode: 0o700 })
  if (process.getuid?.() === 0) await chown(directory, uid, gid)
}

/** Returns whether it made a new one. A store that is there already needs the key that it was sealed with. */
async function makeMasterKey({ settings }: Answers): Promise<boolean> {
  const { data_dir: directory, master_key_file: file } = settings
  const hasStore = await isPresent(join(directory, 'mayfly.db'))
  const { loadMasterKeyText } = await import('../../config/master-key.ts')
  if (!hasStore) await writable(dirname(file))
  let isNew = false
  await loadMasterKeyText(
    { masterKey: { from: 'file', file } },
    {
      createIfMissing: !hasStore,
      onCreated: () => {
        isNew = true
      },
    },
  )
  return isNew
}

const SERVICE = 'mayfly'

/** The owner of the data directory; for root before there is one, the user `mayfly` if it exists. */
async function accountFor(dataDir: string): Promise<Account> {
  const own = { uid: process.getuid?.() ?? 0, gid: process.getgid?.() ?? 0 }
  const accounts = await readAccounts()
  const nameOf = (uid: number) => accounts.find((one) => one.uid === uid)?.name ?? String(uid)
  const found = await stat(dataDir).catch(() => undefined)
  if (found !== undefined) return { uid: found.uid, gid: found.gid, name: nameOf(found.uid) }
  const service = own.uid === 0 ? accounts.find(({ name }) => name === SERVICE) : undefined
  return service ?? { ...own, name: nameOf(own.uid) }
}

async function readAccounts(): Promise<Account[]> {
  const text = await readFile('/etc/passwd', 'utf8').catch(() => '')
  return text.split('\n').flatMap((line) => {
    const [name = '', , uid, gid] = line.split(':')
    return uid === undefined || gid === undefined ? [] : [{ name, uid: Number(uid), gid: Number(gid) }]
  })
}

const UNITS = ['/etc/systemd/system', '/usr/lib/systemd/system', '/lib/systemd/system']

/** What to run next: start the server, make its first administrator, add a backend. */
export async function nextCommands(
  { settings, configFile, admin }: Answers,
  { account }: Written,
): Promise<readonly string[]> {
  const own = process.getuid?.()
  const sudo = own === 0 || own === account.uid ? '' : `sudo -u ${account.name} `
  const at = `--data-dir ${shellWord(settings.data_dir)}`
  return [
    (await isService()) ? `${own === 0 ? '' : 'sudo '}systemctl enable --now mayfly` : serverLine(),
    `${sudo}mayfly agent create ${admin} --scope 'admin:*' --scope '*' ${at}`,
    `${sudo}mayfly backend add postgres ${at}`,
  ]

  function serverLine(): string {
    const start = `mayfly server --config ${shellWord(configFile)}`
    if (own === account.uid) return start
    return own === 0 ? `runuser -u ${account.name} -- ${start}` : `sudo -u ${account.name} ${start}`
  }
}

async function isService(): Promise<boolean> {
  if (!(await isPresent('/run/systemd/system'))) return false
  return (await Promise.all(UNITS.map((directory) => isPresent(`${directory}/mayfly.service`)))).includes(
    true,
  )
}
