import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { createServer, type Server } from 'node:https'
import { type AddressInfo, connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Duplex } from 'node:stream'
import type { IssuedCredential } from '../../../src/client/wire.ts'
import { splitCredential } from '../../../src/domain/secret-fields.ts'
import type { HttpUse } from '../../../src/domain/use.ts'
import { createAuthority } from '../../../src/proxy/authority/authority.ts'
import { createTraffic } from '../../../src/proxy/traffic/create-traffic.ts'
import type { Held, RequestLine, Site } from '../../../src/proxy/types.ts'
import { writeBundle } from '../../../src/proxy/ways/bundle.ts'
import { forwardVariables } from '../../../src/proxy/ways/forward-variables.ts'
import { placeholderFor } from '../../../src/proxy/ways/placeholder.ts'
import { placeholderCredential } from '../../../src/proxy/ways/placeholder-credential.ts'
import { needsTls, siteVariables } from '../../../src/proxy/ways/variables.ts'
import { type Certificates, makeCertificates } from '../../support/certificates.ts'
import { type ProgramEnd, run } from '../../support/run-program.ts'
import { testCuts } from '../traffic-world.ts'

export interface Handler {
  (request: IncomingMessage, response: ServerResponse): void
  upgrade?(request: IncomingMessage, socket: Duplex): void
}

/** One credential and where it is used. The upstreams of the tests have a certificate for every host of it. */
export interface Credential {
  readonly name: string
  readonly type: string
  readonly token?: string
  readonly fields?: Readonly<Record<string, string>>
  readonly uses: readonly Omit<HttpUse, 'protocol' | 'local' | 'ca'>[]
  /** Variables of the child, made of the credential that it gets. */
  env(given: IssuedCredential & { readonly token: string }): Record<string, string>
}

export interface ClientWorld {
  /** What the child gets and nothing else: no secret is in it. */
  readonly env: Readonly<Record<string, string>>
  readonly sites: readonly Site[]
  /** Of the forward proxy, with the login of the run. */
  readonly forward: string
  readonly directory: string
  readonly lines: RequestLine[]
  readonly misused: string[]
  /** Runs a program with the environment of the child, in a directory of its own. */
  run(command: readonly string[], more?: Readonly<Record<string, string>>): Promise<ProgramEnd>
  /** The same program without its base URLs, so that it takes the forward proxy. */
  runForward(command: readonly string[], more?: Readonly<Record<string, string>>): Promise<ProgramEnd>
  /** Where this text stands, itself or in base64: in what the programs printed so far, and in the files of their directory. */
  find(text: string): Promise<string[]>
  close(): Promise<void>
}

/**
 * Hosts of the internet, which lead to a server of the test by an address that nobody else has; a number is the port of one that
 * listens already, with one of the `certificates`.
 */
export async function startClientWorld(
  credentials: readonly Credential[],
  upstreams: Readonly<Record<string, Handler | number>>,
  own?: Certificates,
): Promise<ClientWorld> {
  const directory = await mkdtemp(join(tmpdir(), 'mf-clients-'))
  const hosts = Object.keys(upstreams)
  const certificates = own ?? makeCertificates(directory, ...hosts)
  const { servers, portOf } = await startUpstreams(upstreams, certificates)
  const addressOf = (host: string) =>
    hosts.includes(host) ? `93.184.216.${hosts.indexOf(host) + 1}` : undefined
  const ports = new Map(hosts.map((host) => [addressOf(host), portOf(host)]))
  const held = credentials.map((one) => heldOf(one, certificates.server.ca))
  const [lines, misused]: [RequestLine[], string[]] = [[], []]
  const authority = createAuthority(Date.now)
  const traffic = createTraffic({
    ...{ held: () => held, authority, cuts: testCuts(), recorder: { record: (line) => lines.push(line) } },
    log: { warn: () => {} },
    resolver: { addresses: async (host) => [addressOf(host) ?? '192.0.2.1'] },
    connect: (address, port) => connect(ports.get(address) ?? port, '127.0.0.1'),
    ...{ isLocal: true, ownServer: [], others: 'inspect', tunnel: [], now: Date.now },
    onMisuse: ({ name }) => misused.push(name),
  })
  const sites: Site[] = []
  const given: Record<string, string> = { PATH: process.env['PATH'] ?? '', HOME: directory, TZ: 'UTC' }
  for (const [index, one] of held.entries()) {
    const own: Site[] = []
    for (const use of one.uses)
      if (use.protocol === 'http')
        own.push(await traffic.openSite(one, use, { tls: needsTls(one.type, use) }))
    sites.push(...own)
    const { env } = credentials[index] as Credential
    Object.assign(
      given,
      env(
        placeholderCredential(issuedOf(credentials[index] as Credential), {
          ...{ uses: one.uses, placeholders: one.placeholders, certificate: authority.certificate },
          ...{ sites: own, databases: [] },
        }),
      ),
    )
  }
  const { env: addresses, files } = siteVariables(sites, given)
  for (const { variable, name, text } of files) {
    await writeFile(join(directory, name), text)
    given[variable] = join(directory, name)
  }
  const bundle = await writeBundle(directory, authority.certificate, {})
  const { url: forward } = await traffic.openForward()
  const proxied = (before: Record<string, string>) => ({
    ...before,
    ...forwardVariables(forward, bundle, before),
  })
  const env = proxied({ ...given, ...addresses })
  const printed: string[] = []
  const start = async (command: readonly string[], all: Record<string, string>, more = {}) => {
    const end = await run(command, { ...all, ...more }, { cwd: directory })
    printed.push(end.stdout, end.stderr)
    return end
  }
  return {
    ...{ env, sites, forward, directory, lines, misused },
    run: (command, more) => start(command, env, more),
    runForward: (command, more) => start(command, proxied(given), more),
    find: async (text) => {
      const forms = formsOf(text)
      const output = printed.filter((one) => forms.some((form) => one.includes(form)))
      const patterns = forms.flatMap((form) => ['-e', form])
      const env = { PATH: process.env['PATH'] ?? '', LC_ALL: 'C' }
      const { stdout } = await run(['grep', '-rlaF', ...patterns, directory], env)
      return [...output, ...stdout.split('\n').filter((file) => file !== '')]
    },
    async close() {
      await traffic.close()
      for (const server of servers) {
        server.closeAllConnections()
        server.close()
      }
      await rm(directory, { recursive: true, force: true })
    },
  }
}

async function startUpstreams(
  upstreams: Readonly<Record<string, Handler | number>>,
  certificates: Certificates,
) {
  const [servers, ports]: [Server[], Map<string, number>] = [[], new Map()]
  for (const [host, upstream] of Object.entries(upstreams)) {
    if (typeof upstream === 'number') {
      ports.set(host, upstream)
      continue
    }
    const server = createServer({ ...certificates.server }, upstream)
    if (upstream.upgrade !== undefined) server.on('upgrade', upstream.upgrade)
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    servers.push(server)
    ports.set(host, (server.address() as AddressInfo).port)
  }
  return { servers, portOf: (host: string) => ports.get(host) ?? 0 }
}

function issuedOf({ token, fields, name }: Credential): IssuedCredential {
  const base = { id: `cred_${name}`, backend: name, scopes: [], expires_at: '', created_at: '', ttl: '1h' }
  const text = token ?? JSON.stringify(fields)
  return { ...base, token: text, ...(fields === undefined ? {} : { fields }) } as IssuedCredential
}

function heldOf(credential: Credential, ca: string): Held {
  const uses = credential.uses.map((use): HttpUse => ({ ...use, protocol: 'http', local: false, ca }))
  const { secrets, open } = splitCredential(issuedOf(credential), uses)
  const { name, type } = credential
  const placeholders = new Map(
    [...secrets].map(([field, secret]) => [field, placeholderFor(type, field, secret)]),
  )
  const live = {
    state: 'live',
    credentialId: `cred_${name}`,
    secrets,
    open,
    expiresAt: Date.now() + 3.6e6,
  } as const
  return { name, backend: name, type, uses, placeholders, now: () => live }
}

/** Itself, and what is the same in base64 wherever it begins. */
function formsOf(text: string): string[] {
  const encoded = [0, 1, 2].map((before) => {
    const all = Buffer.from(`${'x'.repeat(before)}${text}`).toString('base64')
    return all.slice(before === 0 ? 0 : 4, -4)
  })
  return [text, ...encoded]
}

/** A rule for each line: `GET,POST /v1/**`. */
export function rules(...lines: readonly string[]): HttpUse['allow'] {
  return lines.map((line) => {
    const [methods = '', path = '', ...more] = line.split(' ')
    return { methods: methods.split(','), path, ...(more.includes('slashes') ? { slashes: true } : {}) }
  })
}

export const BEARER: HttpUse['places'] = [{ in: 'header', name: 'authorization' }]
