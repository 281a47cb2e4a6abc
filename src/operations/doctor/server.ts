import { readFile } from 'node:fs/promises'
import { type Agent, request } from 'node:https'
import type { TLSSocket } from 'node:tls'
import type { Context } from '../../cli/frame/verb.ts'
import { openAdminClient } from '../../cli/session/admin.ts'
import { findLogin } from '../../cli/session/find-login.ts'
import { clientFor, findProxy, openPublicClient } from '../../cli/session/open.ts'
import { lookAtOperator, type OperatorStatus, operatorInWords } from '../../cli/session/operator-status.ts'
import { notLoggedIn, type Target } from '../../cli/session/session.ts'
import type { Client } from '../../client/client.ts'
import type { BackendHealth } from '../../client/wire.ts'
import { isOpenToAll } from '../../domain/network/socket-table.ts'
import { installation } from '../../installation.ts'
import { type Finding, fail, failed, ok, warn } from './finding.ts'

const CLOCK_WARN_MS = 5_000
/** A proof is valid for a minute. */
const CLOCK_FAIL_MS = 30_000
const DAY_MS = 86_400_000
const CERTIFICATE_WARN_DAYS = 14

const NAMED_BY = {
  flag: 'from --server',
  environment: 'from MAYFLY_SERVER',
  profile: 'from the profile',
  default: 'the default address',
} as const

/** Checks the server, and what its answer tells about clocks and versions. */
export async function checkServer(context: Context): Promise<Finding[]> {
  let target: Target
  let client: Client
  try {
    ;({ target, client } = await openPublicClient(context))
  } catch (error) {
    return [failed('server', error)]
  }
  const before = context.now()
  const findings: Finding[] = []
  try {
    const reply = await client.call<{ version?: string }>({ method: 'GET', path: '/health' })
    const after = context.now()
    findings.push(ok('server', `${target.server.text} responds (${NAMED_BY[target.serverFrom]}).`))
    findings.push(checkClock(reply.header('date'), before, after), checkVersions(reply.body.version))
  } catch (error) {
    return [failed('server', error)]
  }
  await client.ready().catch((error: unknown) => findings.push(failed('readiness', error)))
  return [...findings, await checkTls(context, target)]
}

/** The server wrote the header, in whole seconds, between `before` and `after`. */
function checkClock(date: string | undefined, before: number, after: number): Finding {
  const server = Date.parse(date ?? '')
  if (Number.isNaN(server))
    return warn('clock', 'The server sends no date.', 'Check the proxy in front of it.')
  const off = before > server + 999 ? before - server - 999 : after < server ? after - server : 0
  if (Math.abs(off) < CLOCK_WARN_MS) return ok('clock', 'The clocks agree.')
  const seconds = Math.round(Math.abs(off) / 1_000)
  const message = `The clock of this machine is ${seconds} s ${off > 0 ? 'ahead of' : 'behind'} the server's.`
  const level = Math.abs(off) < CLOCK_FAIL_MS ? warn : fail
  return level('clock', message, 'Set both by NTP, such as with: timedatectl set-ntp true')
}

function checkVersions(server: string | undefined): Finding {
  const own = installation.version
  if (server === own) return ok('version', `Command and server are both ${own}.`)
  return warn(
    'version',
    `This command is ${own}, the server is ${server ?? 'unknown'}.`,
    'Use the same version for both.',
  )
}

/** Checks the certificate of a server that is trusted; `checkServer` reports one that is not. */
async function checkTls(context: Context, { server, caFile }: Target): Promise<Finding> {
  if (server.socketPath !== undefined) return ok('tls', 'A unix socket needs no TLS.')
  const url = new URL(server.url)
  if (url.protocol === 'http:' && server.isLocal)
    return (await isOpen(url))
      ? warn(
          'tls',
          'The server listens at every address of this machine, without TLS.',
          'Set tls_cert_file and tls_key_file on the server, or listen on 127.0.0.1 behind a proxy with TLS.',
        )
      : ok('tls', 'No TLS; the server is on this machine.')
  if (url.protocol === 'http:')
    return warn(
      'tls',
      'The connection is not encrypted (MAYFLY_ALLOW_HTTP).',
      'Set tls_cert_file and tls_key_file on the server.',
    )
  try {
    const ca = caFile === undefined ? undefined : await readFile(caFile, 'utf8')
    const agent = server.isLocal ? undefined : await findProxy(context)
    const end = Date.parse(await certificateEnd(url, { ca, agent }))
    const days = Math.floor((end - context.now()) / DAY_MS)
    return days < CERTIFICATE_WARN_DAYS
      ? warn('tls', `The server certificate expires in ${days} days.`, 'Renew it.')
      : ok('tls', `The certificate is trusted and valid for ${days} days.`)
  } catch (error) {
    return failed('tls', error, 'warn')
  }
}

/** Linux only: other systems do not say who listens where. */
async function isOpen({ port }: URL): Promise<boolean> {
  const tables = ['/proc/net/tcp', '/proc/net/tcp6'].map((name) => readFile(name, 'latin1').catch(() => ''))
  return isOpenToAll(Number(port || '80'), (await Promise.all(tables)).join('\n'))
}

function certificateEnd(
  url: URL,
  { ca, agent }: { ca: string | undefined; agent: Agent | undefined },
): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>()
  const options = { ca, agent: agent ?? false, timeout: 10_000 }
  const asked = request(new URL('/health', url), options, (reply) => {
    resolve((reply.socket as TLSSocket).getPeerCertificate().valid_to)
    asked.destroy()
  })
  asked.on('timeout', () => asked.destroy(new Error('The server did not answer in time.')))
  asked.on('error', reject)
  asked.end()
  return promise
}

const SOON_MS = DAY_MS

/** Checks that the login works. */
export async function checkLogin(context: Context, target: Target): Promise<Finding> {
  try {
    const login = await findLogin(context, target)
    const operator = login === undefined ? await lookAtOperator(context, target) : undefined
    if (operator !== undefined) return checkOperator(operator, context.now())
    if (login === undefined) {
      const { message, hint } = notLoggedIn(target)
      return warn('login', message, hint ?? '')
    }
    const status = await (await clientFor(context, target, login.auth)).status()
    const left = status.expires_at === null ? undefined : Date.parse(status.expires_at) - context.now()
    // A login by an identity gives its agent more time.
    if (login.from !== 'identity' && left !== undefined && left < SOON_MS)
      return warn(
        'login',
        `The agent ${status.name} expires at ${status.expires_at}.`,
        'Enroll again before then.',
      )
    const from = login.auth.kind === 'identity' ? `by ${login.auth.title}` : `from the ${login.from}`
    return ok('login', `The login works: agent ${status.name}, ${from}.`)
  } catch (error) {
    return failed('login', error)
  }
}

function checkOperator(operator: OperatorStatus, now: number): Finding {
  const words = operatorInWords(operator, now)
  if (operator.state === 'active') return ok('login', `The login works: operator ${words}.`)
  return warn('login', `The login of an operator: ${words}.`, `Run \`mayfly login --${operator.login}\`.`)
}

/** Checks for admin access; having none is not a failure. */
export async function checkAdmin(context: Context): Promise<Finding> {
  try {
    const client = await openAdminClient(context)
    await client.call({ method: 'GET', path: '/v1/admin/agents', query: { limit: 1 } })
    return ok('admin', 'You may administer this server.')
  } catch (error) {
    const finding = failed('admin', error)
    switch (codeOf(error)) {
      case 'insufficient_scope':
        return ok('admin', 'This login cannot list agents (admin:agents:read).')
      case 'unauthorized':
      case 'not_logged_in':
        return ok('admin', 'You are not an administrator of this server.')
      default:
        return finding
    }
  }
}

/** So long the upstream may take to end what has ended. */
const UNENDED_WARN_MS = 30_000

interface Examined {
  readonly name: string
  readonly health?: BackendHealth
  readonly unended?: { readonly count: number; readonly since: string }
}

/** Names the backends that are down, or whose upstream does not end what has ended, to those who may read them. */
export async function checkBackends(context: Context): Promise<Finding[]> {
  try {
    const client = await openAdminClient(context)
    const { body } = await client.call<readonly Examined[]>({
      method: 'GET',
      path: '/v1/admin/backends',
      query: { limit: 1_000 },
    })
    const late = body.flatMap(({ name, unended }) => {
      if (unended === undefined) return []
      const ageMs = context.now() - Date.parse(unended.since)
      return ageMs < UNENDED_WARN_MS ? [] : [{ name, count: unended.count, ageMs }]
    })
    const down = findDown(body)
    if (late.length === 0)
      return [...down, ok('backends', 'Every credential that has ended is gone upstream.')]
    const unended = late.map(({ name, count, ageMs }) =>
      warn(
        'backends',
        `${name}: the upstream may still accept ${count} ended credential${count === 1 ? '' : 's'}, one for ${Math.round(ageMs / 1_000)} s.`,
        `Repair the upstream or the login of the backend; the log of the server says what it answers. They end by themselves then.`,
      ),
    )
    return [...down, ...unended]
  } catch (error) {
    // Whether this login may administer is another check.
    failed('backends', error)
    return []
  }
}

/** Names the nodes whose settings are not those of the node that answers, to those who may read them. */
export async function checkNodes(context: Context): Promise<Finding[]> {
  try {
    const nodes = await (await openAdminClient(context)).admin.nodes()
    if (nodes.length === 1) return []
    const others = nodes.filter(({ differs }) => differs.length > 0)
    if (others.length === 0) return [ok('nodes', `The ${nodes.length} nodes have the same settings.`)]
    return others.map(({ host, differs }) =>
      warn(
        'nodes',
        `The node on ${host} has other settings than the one that answers: ${differs.join(', ')}.`,
        'Give both the same files, and reload or restart the one that is behind.',
      ),
    )
  } catch (error) {
    // Whether this login may administer is another check.
    failed('nodes', error)
    return []
  }
}

/** So many are named, each in a finding of its own. */
const MOST_NAMED = 10

function findDown(backends: readonly Examined[]): Finding[] {
  const down = backends.filter(({ health }) => health?.state === 'down')
  const named = down
    .slice(0, MOST_NAMED)
    .map(({ name, health }) =>
      warn(
        'backends',
        `${name} is down${health?.last_failure_reason ? `: ${health.last_failure_reason}` : ''}.`,
        `Repair the upstream or the login of the backend, then run: mayfly backend check ${name}`,
      ),
    )
  const more = down.length - named.length
  if (more <= 0) return named
  return [
    ...named,
    warn('backends', `${more} more backends are down.`, 'See all of them with: mayfly backend check --all'),
  ]
}

const codeOf = (error: unknown) => String((error as { code?: unknown }).code)
