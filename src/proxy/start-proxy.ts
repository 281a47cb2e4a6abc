import { chmod, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { pause } from '../client/abort.ts'
import type { Client } from '../client/client.ts'
import type { IssuedCredential, Run } from '../client/wire.ts'
import { withDeadline } from '../domain/abort.ts'
import { authorityText, readAuthority } from '../domain/network/authority.ts'
import { isLoopbackAddress } from '../domain/network/loopback.ts'
import type { DatabaseUse, Use } from '../domain/use.ts'
import { createResolver } from '../egress/resolver.ts'
import { createAuthority } from './authority/authority.ts'
import { openDatabase } from './databases/open-database.ts'
import type { DatabaseParts, OpenedDatabase } from './databases/parts.ts'
import { ProxyFailure } from './failure.ts'
import type { Holding } from './held/holding.ts'
import { type HeldCredentials, type HeldRequest, openHeld } from './held/open-held.ts'
import { type BatchRecorder, createRecorder, type Totals } from './record/create-recorder.ts'
import { createTraffic } from './traffic/create-traffic.ts'
import type { Traffic } from './traffic/parts.ts'
import type { Authority, Held, ProxyLog, ProxySettings, Site } from './types.ts'
import { writeBundle } from './ways/bundle.ts'
import { forwardVariables } from './ways/forward-variables.ts'
import { placeholderFor } from './ways/placeholder.ts'
import { placeholderCredential } from './ways/placeholder-credential.ts'
import { needsTls, siteVariables } from './ways/variables.ts'

type Env = Readonly<Record<string, string | undefined>>

export interface ProxyOptions {
  readonly client: Client
  readonly run: {
    readonly id: string
    readonly heartbeatMs: number
    /** Whether somebody beats and says so by `beaten`. */
    readonly beats: boolean
  }
  readonly requests: readonly HeldRequest[]
  readonly settings: ProxySettings
  /** Absolute, of mode 0700 or, for other users, 0750. Files for the child and sockets are written here. */
  readonly directory: string
  /** How Mayfly is reached. */
  readonly server: {
    /** Over loopback or its socket: a backend's own loopback address is the same machine then. */
    readonly isLocal: boolean
    /** Addresses at which it listens, besides that of the client: URLs. */
    readonly addresses: readonly string[]
  }
  readonly log: ProxyLog
  /** Epoch ms. */
  now(): number
  /** Something was issued: at first, and at each renewal. */
  onIssued(issued: Pick<IssuedCredential, 'id' | 'backend' | 'expires_at'>): void
  /** It can serve nothing any more. Called once, and not by `close`. */
  onEnd(end: ProxyEnd): void
}

export type ProxyEnd =
  /** The server has ended the run, for this reason if it says one. */
  | { readonly kind: 'run_ended'; readonly reason: Run['reason'] }
  /** A placeholder of this credential was misused, and the settings say that this ends the run. */
  | { readonly kind: 'misused'; readonly name: string }

export type PlaceholderCredential = IssuedCredential & { readonly token: string }

export interface RunningProxy {
  /** What the child gets, in the order of the requests. */
  readonly credentials: readonly PlaceholderCredential[]
  /** The variables that lead a child with this environment, its placeholders included, to the proxy. Writes the files that they name. */
  leadTo(env: Env): Promise<Leading>
  readonly listeners: Listeners
  /** The server has answered a beat that was sent so many milliseconds ago. */
  beaten(agoMs: number): void
  totals(): Totals
  /** Serves nothing any more, and sends what is still to be recorded. The run goes on. */
  close(): Promise<void>
}

export interface Leading {
  readonly variables: Readonly<Record<string, string>>
  /** What the user should know, for standard error. */
  readonly notes: readonly string[]
}

/** Where it listens. */
export interface Listeners {
  /** For `HTTPS_PROXY`, with the login of the run. */
  readonly forward: string
  readonly sites: readonly { readonly name: string; readonly use: string; readonly url: string }[]
  readonly databases: readonly {
    readonly name: string
    readonly use: string
    readonly host: string
    readonly port: number
  }[]
}

const FLUSH_MS = 5_000
/** A connection that does not close must not keep the record back. */
const CLOSE_MS = 2_000
const END_TRIES = 5
/** After the first failure; then twice as long each time. */
const END_AGAIN_MS = 250

/** All that a proxy is made of. */
interface Parts {
  readonly held: HeldCredentials
  readonly recorder: BatchRecorder
  readonly authority: Authority
  readonly traffic: Traffic
  /** What all databases have in common. */
  readonly databases: Omit<DatabaseParts, 'held' | 'use'>
}

/** Where one credential is reached. */
interface Ways {
  readonly held: Holding
  readonly sites: readonly Site[]
  readonly databases: readonly { readonly use: DatabaseUse; readonly opened: OpenedDatabase }[]
}

/**
 * Issues what is requested, and listens. Throws as the client does, and `ProxyFailure`; whoever began the run must end it then, too.
 */
export async function startProxy(options: ProxyOptions): Promise<RunningProxy> {
  const parts = await openParts(options)
  const { held, recorder, traffic } = parts
  const closing: (() => Promise<unknown>)[] = [() => traffic.close()]
  const close = async () => {
    held.close()
    await withDeadline(CLOSE_MS, () => Promise.allSettled(closing.map((one) => one()))).catch(() => {})
    await recorder.close(FLUSH_MS)
  }
  try {
    for (const one of held.held) requireUses(one)
    const forward = await traffic.openForward(portOf(options.settings))
    const ways: Ways[] = []
    for (const one of held.held) ways.push(await openWays(parts, one, closing))
    return {
      credentials: ways.map((one) => credentialOf(parts.authority, one)),
      leadTo: (env) => leadTo(options, parts, { ways, forward: forward.url }, env),
      listeners: listenersOf(ways, forward.url),
      beaten: held.beaten,
      totals: recorder.totals,
      close,
    }
  } catch (error) {
    await close()
    throw error
  }
}

async function openParts(options: ProxyOptions): Promise<Parts> {
  const { client, run, log, now } = options
  const monotonic = () => performance.now()
  const recorder = createRecorder({ runs: client.runs, run: run.id, log, monotonic })
  const held = await openHeld({
    ...{ client, run, log, placeholderFor, onIssued: options.onIssued },
    requests: withNames(options.requests),
    clocks: { now, monotonic },
    whyUnsure: recorder.whyBehind,
    onRunEnded: (reason) => options.onEnd({ kind: 'run_ended', reason }),
  })
  const { others, tunnel, idleMs, uids, listen } = options.settings
  const { isLocal } = options.server
  const authority = createAuthority(now)
  const all = () => held.held
  // One resolver for everything: it keeps what it was told.
  const shared = { recorder, log, now, isLocal, cuts: held.cuts, resolver: createResolver() }
  const onMisuse = misuseEnds(options, held)
  const traffic = createTraffic({
    ...{ ...shared, authority, others, tunnel, idleMs, uids, onMisuse, held: all },
    ownServer: ownAddresses(options),
    // By its address: `localhost` may lead to another's listener on ::1, and S3 clients put a bucket before a name.
    listen: { host: listen.host },
  })
  const databases = {
    ...{ ...shared, onMisuse, all, directory: options.directory },
    ...(uids !== undefined && { uids }),
    ...(!isLoopbackAddress(listen.host) && { host: listen.host }),
  }
  return { held, recorder, authority, traffic, databases }
}

/** With `on_misuse: end_run` the first misused placeholder ends everything. */
function misuseEnds({ client, run, settings, log, onEnd }: ProxyOptions, held: HeldCredentials) {
  let isEnding = false
  const end = async () => {
    for (let tries = 1; ; tries += 1)
      try {
        await client.runs.end(run.id, { reason: 'placeholder_misused' })
        return
      } catch {
        if (tries === END_TRIES) return log.warn(`${run.id} could not be ended; its heartbeats have stopped.`)
        await pause(END_AGAIN_MS * 2 ** (tries - 1), undefined)
      }
  }
  return ({ name }: Held): void => {
    if (settings.onMisuse !== 'end_run' || isEnding) return
    isEnding = true
    held.endAll(`A placeholder of ${name} was misused, which ended the run.`)
    // Nobody beats for it any more once this is told.
    void end()
    onEnd({ kind: 'misused', name })
  }
}

async function openWays(
  { traffic, databases: common }: Parts,
  one: Holding,
  closing: (() => Promise<unknown>)[],
): Promise<Ways> {
  const sites: Site[] = []
  const databases: { use: DatabaseUse; opened: OpenedDatabase }[] = []
  for (const use of one.uses) {
    if (use.protocol === 'http') {
      sites.push(await traffic.openSite(one, use, { tls: needsTls(one.type, use) }))
      continue
    }
    const opened = await openDatabase({ ...common, held: one, use })
    closing.push(opened.close)
    databases.push({ use, opened })
  }
  return { held: one, sites, databases }
}

function credentialOf({ certificate }: Authority, { held, sites, databases }: Ways): PlaceholderCredential {
  const { uses, placeholders, first } = held
  const reached = databases.map(({ use, opened: { host, port, fields } }) => ({ use, host, port, fields }))
  return placeholderCredential(first.credential, {
    uses,
    placeholders,
    certificate,
    sites,
    databases: reached,
  })
}

/** Names only: what `NO_PROXY` has. */
function hostOf(use: Use): string {
  return use.protocol === 'http' ? use.origin.replace(/^https?:\/\//, '').replace(/:\d+$/, '') : use.host
}

async function leadTo(
  { directory, settings: { uids } }: ProxyOptions,
  { authority }: Parts,
  { ways, forward }: { readonly ways: readonly Ways[]; readonly forward: string },
  env: Env,
): Promise<Leading> {
  const sites = ways.flatMap((one) => one.sites)
  const { env: addresses, files, notes } = siteVariables(sites, env)
  const mode = uids === undefined ? 0o600 : 0o640
  const paths: Record<string, string> = {}
  for (const { variable, name, text } of files) {
    paths[variable] = join(directory, name)
    await writeFile(join(directory, name), text, { mode, flag: 'wx' })
  }
  const bundle = await writeBundle(directory, authority.certificate, env)
  await chmod(bundle, mode)
  const hosts = ways.flatMap(({ held }) => held.uses.map(hostOf))
  const first = { ...addresses, ...paths, ...databaseVariables(ways, env) }
  const variables = { ...first, ...forwardVariables(forward, bundle, { ...env, ...first }, hosts) }
  return { variables, notes: [...notes, ...noteOfProxy(env)] }
}

/** The user's network may have no other way out. */
function noteOfProxy(env: Env): string[] {
  const given = env['HTTPS_PROXY'] || env['https_proxy']
  return given
    ? [
        'mayfly: HTTPS_PROXY is replaced. The proxy of this run reaches every host itself, without the proxy that was set.',
      ]
    : []
}

/** What clients of a database need besides: where a variable of it is delivered, the others that lead there. */
function databaseVariables(ways: readonly Ways[], env: Env): Record<string, string> {
  const variables: Record<string, string> = {}
  for (const { opened } of ways.flatMap(({ databases }) => databases)) {
    const all = Object.entries(opened.variables)
    if (!all.some(([name, value]) => env[name] === value)) continue
    for (const [name, value] of all) if (env[name] === undefined) variables[name] ??= value
  }
  return variables
}

function listenersOf(ways: readonly Ways[], forward: string): Listeners {
  return {
    forward,
    sites: ways.flatMap(({ held, sites }) =>
      sites.map(({ use, url }) => ({ name: held.name, use: use.name, url })),
    ),
    databases: ways.flatMap(({ held, databases }) =>
      databases.map(({ use, opened: { host, port } }) => ({ name: held.name, use: use.name, host, port })),
    ),
  }
}

function requireUses({ name, backend, type, uses }: Holding): void {
  if (uses.length > 0) return
  throw new ProxyFailure(
    'no_uses',
    `The proxy does not know where the credential of ${name} is used: the kind ${type} of the backend ${backend} does not say.`,
    `An administrator can say it: mayfly backend update ${backend} --uses @file.json`,
  )
}

function ownAddresses({ client, server }: ProxyOptions): string[] {
  const all = [client.server, ...server.addresses].flatMap((address) => {
    const url = URL.parse(address)
    const scheme = url?.protocol === 'https:' ? 'https' : 'http'
    const found = url === null ? undefined : readAuthority(url.host, scheme)
    return found === undefined ? [] : [authorityText(found)]
  })
  return [...new Set(all)]
}

/** Several credentials of one backend: `orders`, `orders#2`. */
function withNames(requests: readonly HeldRequest[]): HeldRequest[] {
  const seen = new Map<string, number>()
  return requests.map(({ name, request }) => {
    const count = (seen.get(name) ?? 0) + 1
    seen.set(name, count)
    return { name: count === 1 ? name : `${name}#${count}`, request }
  })
}

const portOf = ({ listen }: ProxySettings) => (listen.port === 0 ? {} : { port: listen.port })
