import type { Static } from 'typebox'
import { InvalidValue, quote } from '../domain/fault.ts'
import { isLoopbackHost } from '../domain/network/loopback.ts'
import type { Secret } from '../domain/secret.ts'
import type { ReadFile } from '../files/read-secret.ts'
import { checkEntries, type Note, noting, readNoting } from './check-entries.ts'
import type { ReceiverSchema } from './notify-schema.ts'

export type ReceiverEntry = Static<typeof ReceiverSchema>

interface Named {
  readonly name: string
  readonly local: boolean
}

interface Mail extends Named {
  readonly host: string
  readonly port: number
  readonly tls: 'required' | 'implicit' | 'none'
  readonly from: string
  readonly to: readonly string[]
}

/** An entry that is well-formed. Its secrets are still in files. */
export type CheckedReceiver =
  | (Named & { readonly kind: 'webhook'; readonly url: string; readonly secretFile: string })
  | (Mail & {
      readonly kind: 'smtp'
      readonly user: string | undefined
      readonly passwordFile: string | undefined
    })
  | (Named & { readonly kind: 'slack'; readonly urlFile: string })

/** An entry with its secrets. */
export type ConfiguredReceiver =
  | (Named & { readonly kind: 'webhook'; readonly url: string; readonly secret: Secret })
  | (Mail & {
      readonly kind: 'smtp'
      readonly login: { readonly user: string; readonly password: Secret } | undefined
    })
  | (Named & { readonly kind: 'slack'; readonly url: Secret })

type Report = (fault: InvalidValue) => void

const NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/
/** An address, or a name and an address in angle brackets: nothing that could begin another header or recipient. */
const ADDRESS = /^(?:[^\p{C}<>@,;:"\\()[\]]{1,100} <)?[^\s\p{C}<>@,;:"\\()[\]]{1,64}@[A-Za-z0-9.-]{1,253}>?$/u
const HOST = /^(?:\[[0-9a-f:.]+\]|[a-z0-9](?:[a-z0-9.-]{0,252}))$/
const KINDS = ['webhook', 'smtp', 'slack'] as const

/** Checks all entries and reports every fault with its place. Entries with faults are left out. */
export function checkReceivers(entries: readonly ReceiverEntry[], report: Report): CheckedReceiver[] {
  const names = new Set<string>()
  return checkEntries(entries, report, (entry, note) => {
    if (!NAME.test(entry.name))
      note(['name'], `${quote(entry.name)} is not 1 to 64 letters, digits, ".", "_" or "-"`)
    const key = entry.name.toLowerCase()
    if (names.has(key)) note(['name'], `${quote(entry.name)} is already the name of another receiver`)
    names.add(key)
    const kinds = KINDS.filter((kind) => entry[kind] !== undefined)
    if (kinds.length !== 1) note([], `requires one of ${KINDS.join(', ')}, and only one`)
    return checkWay(entry, note)
  })
}

function checkWay({ name, webhook, smtp, slack }: ReceiverEntry, note: Note): CheckedReceiver | undefined {
  if (webhook !== undefined) {
    const { url, secret_file: secretFile, local = false } = webhook
    noting(note, ['webhook', 'url'], () => requireHttpUrl(url, local))
    return { kind: 'webhook', name, local, url, secretFile }
  }
  if (slack !== undefined)
    return { kind: 'slack', name, local: slack.local ?? false, urlFile: slack.url_file }
  if (smtp === undefined) return undefined
  const { url, from, password_file: passwordFile, local = false } = smtp
  const to = [smtp.to].flat()
  if (!ADDRESS.test(from))
    note(['smtp', 'from'], `${quote(from)} is not an address such as mayfly@example.com`)
  for (const one of to)
    if (!ADDRESS.test(one)) note(['smtp', 'to'], `${quote(one)} is not an address such as ops@example.com`)
  const server = noting(note, ['smtp', 'url'], () => parseMailUrl(url, local, passwordFile !== undefined))
  if (server === undefined) return undefined
  if ((server.user === undefined) !== (passwordFile === undefined))
    note(
      ['smtp'],
      server.user === undefined
        ? 'has a password_file, but no user: write smtps://user@host'
        : 'has a user, but no password_file',
    )
  return { kind: 'smtp', name, local, ...server, from, to, passwordFile }
}

/** Never quotes the URL: that of an incoming webhook is a secret. */
function requireHttpUrl(text: string, local: boolean): void {
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (url === undefined || !['https:', 'http:'].includes(url.protocol))
    throw new InvalidValue('is not a URL such as https://hooks.example.com/mayfly')
  if (url.username !== '' || url.password !== '')
    throw new InvalidValue('must not contain a user or password')
  if (url.hash !== '') throw new InvalidValue('must not have a fragment')
  if (url.protocol === 'http:' && !local)
    throw new InvalidValue('must start with https:// (http only with "local: true")')
  requireLocal(url.hostname, local)
}

function requireLocal(host: string, local: boolean): void {
  if (isLoopbackHost(host) && !local)
    throw new InvalidValue('is on this machine; if that is intended, add "local: true"')
}

type Server = Pick<Mail, 'host' | 'port' | 'tls'> & { readonly user: string | undefined }

function parseMailUrl(text: string, local: boolean, hasPassword: boolean): Server {
  const match = /^(smtps?):\/\/(?:([^\s/?#:@]+)@)?(\[[^\]]+\]|[^\s/?#:@[\]]+)(?::(\d{1,5}))?\/?$/i.exec(text)
  if (match === null) {
    const isPassword = /^smtps?:\/\/[^/@]*:[^/]*@/i.test(text)
    throw new InvalidValue(
      isPassword
        ? 'must not contain a password; use password_file'
        : 'is not a URL such as smtps://user@mail.example.com:465',
    )
  }
  const [, scheme = '', user, name = '', given] = match
  const host = name.toLowerCase()
  const port = given === undefined ? undefined : Number(given)
  if (!HOST.test(host) || port === 0 || (port ?? 0) > 65_535)
    throw new InvalidValue('is not a URL such as smtps://user@mail.example.com:465')
  requireLocal(host, local)
  const tls = scheme.toLowerCase() === 'smtps' ? 'implicit' : local && !hasPassword ? 'none' : 'required'
  return {
    host: host.replace(/^\[(.*)\]$/, '$1'),
    port: port ?? { implicit: 465, required: 587, none: 25 }[tls],
    tls,
    user: user === undefined ? undefined : decodeUser(user),
  }
}

function decodeUser(text: string): string {
  try {
    const user = decodeURIComponent(text)
    if (!/\p{Cc}/u.test(user)) return user
  } catch {
    // Reported below.
  }
  throw new InvalidValue('has a user that cannot be decoded')
}

const WHSEC = /^whsec_(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/

/** Reads the secrets. `report` gets the place of each fault; its message never has the content of a file. */
export async function readReceivers(
  checked: readonly CheckedReceiver[],
  readFile: ReadFile,
  report: (receiver: string, path: readonly string[], message: string) => void,
): Promise<ConfiguredReceiver[]> {
  const read = (name: string, path: readonly string[], file: string, check: (text: string) => void) =>
    readNoting(file, readFile, check, (message) => report(name, path, message))
  return Promise.all(
    checked.map(async (one): Promise<ConfiguredReceiver> => {
      switch (one.kind) {
        case 'webhook': {
          const { secretFile, ...rest } = one
          return { ...rest, secret: await read(one.name, ['webhook', 'secret_file'], secretFile, requireKey) }
        }
        case 'slack': {
          const { urlFile, ...rest } = one
          const check = (text: string) => requireHttpUrl(text, one.local)
          return { ...rest, url: await read(one.name, ['slack', 'url_file'], urlFile, check) }
        }
        case 'smtp': {
          const { user, passwordFile, ...rest } = one
          if (user === undefined || passwordFile === undefined) return { ...rest, login: undefined }
          const password = await read(one.name, ['smtp', 'password_file'], passwordFile, () => undefined)
          return { ...rest, login: { user, password } }
        }
        default: {
          const never: never = one
          return never
        }
      }
    }),
  )
}

function requireKey(text: string): void {
  const bytes = WHSEC.test(text) ? Buffer.from(text.slice('whsec_'.length), 'base64').length : 0
  if (bytes < 24 || bytes > 64)
    throw new InvalidValue(
      'the file does not hold whsec_ and base64 of 24 to 64 bytes. Make one: (printf whsec_; openssl rand -base64 32) > FILE',
    )
}
