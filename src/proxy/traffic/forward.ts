import { createHash, randomBytes, timingSafeEqual } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { isIP, type Socket } from 'node:net'
import { authorityText, readAuthority } from '../../domain/network/authority.ts'
import type { Reason } from '../rules/refusals.ts'
import { ignoreErrors } from '../sockets.ts'
import type { Context } from './context.ts'
import { Failure, failureOf } from './failure.ts'
import { createHttp1Server } from './http1-server.ts'
import type { Way } from './inbound/inbound.ts'
import { beginLine } from './line.ts'
import { answerBare, refuse } from './own-reply.ts'
import { type OnSecure, openSecure } from './secure.ts'
import { destinationOf } from './serve.ts'
import type { OnRequest, Servers } from './servers.ts'
import { isTunnelled, openTunnel } from './tunnel.ts'
import { bareHost } from './upstream/reach.ts'

export interface Login {
  readonly user: string
  readonly password: string
}

export function newLogin(): Login {
  return { user: 'mayfly', password: randomBytes(24).toString('base64url') }
}

/** Reads what clients of a forward proxy send: CONNECT, and requests in absolute form. Who has no login gets nothing. */
export function createForward(ctx: Context, login: Login, servers: Servers, onRequest: OnRequest) {
  const hasLogin = createLoginCheck(login)
  const onDistrust = noteOnce(ctx)
  const http1 = createHttp1Server(ctx, {
    onRequest(inbound, request, socketed) {
      if (hasLogin(request)) onRequest(inbound, wayOf(request), socketed)
      else if (socketed !== undefined) answerBare(socketed.socket, 'no_login')
      else refuse(inbound, 'no_login')
    },
    authorityOf: () => '',
  })
  http1.on('connect', (request, socket: Socket, head) => {
    ignoreErrors(socket)
    if (head.length > 0) socket.unshift(head)
    if (!hasLogin(request)) return turnAway(ctx, request, socket, 'no_login')
    connect(ctx, { servers, onDistrust }, request, socket).catch((error: unknown) =>
      turnAway(ctx, request, socket, failureOf(error, 'broken').reason),
    )
  })
  return {
    take: (raw: Socket) => void http1.emit('connection', raw),
    close: () => void http1.close(),
  }
}

/** Of a request in absolute form, which only plain HTTP has. */
function wayOf({ url = '' }: IncomingMessage): Way {
  const [, host] = /^http:\/\/([^/?#]+)/i.exec(url) ?? []
  const authority = host === undefined ? undefined : readAuthority(host, 'http')
  if (authority === undefined) return { authority: '', scheme: 'http', refused: 'bad_target' }
  return { authority: authorityText(authority), scheme: 'http' }
}

interface Interceptor {
  readonly servers: Servers
  onDistrust(host: string): void
}

/** The program says only that a certificate is wrong. */
function noteOnce({ log }: Pick<Context, 'log'>): (host: string) => void {
  const told = new Set<string>()
  return (host) => {
    if (told.size >= MOST_TOLD || told.has(host)) return
    told.add(host)
    log.warn(
      `a program does not trust the certificate that the proxy has for ${host}. If it pins its own, use the proxy's address (MAYFLY_URL_…), or name a host of no backend in --tunnel`,
    )
  }
}

const MOST_TOLD = 20

async function connect(
  ctx: Context,
  { servers, onDistrust }: Interceptor,
  request: IncomingMessage,
  socket: Socket,
): Promise<void> {
  const read = readAuthority(request.url ?? '', 'https')
  if (read === undefined || !/:\d+$/.test(request.url ?? '')) throw new Failure('bad_target')
  const authority = authorityText(read)
  const rules = ctx.rules()
  if (rules.isKnown('https', authority)) {
    accept(socket)
    return intercept(ctx, { servers, onDistrust }, socket, authority)
  }
  if (rules.isKnown('http', authority)) {
    accept(socket)
    servers.take(socket, { authority, scheme: 'http' }, 'http/1.1')
    return
  }
  const host = bareHost(read.host)
  if (isTunnelled(ctx.tunnel, host) && read.port === 443)
    return openTunnel(ctx, authority, socket, () => accept(socket))
  await ctx.pools.check(destinationOf(ctx, 'https', authority, undefined))
  accept(socket)
  await intercept(ctx, { servers, onDistrust }, socket, authority)
}

function accept(socket: Socket): void {
  socket.write('HTTP/1.1 200 Connection Established\r\n\r\n')
}

/** Reads what is in the TLS of the client: its name, and each request's, must be the one of CONNECT. */
async function intercept(
  ctx: Context,
  { servers, onDistrust }: Interceptor,
  socket: Socket,
  authority: string,
): Promise<void> {
  const host = bareHost(authority.slice(0, authority.lastIndexOf(':')))
  const onSecure: OnSecure = (secure, protocol) => {
    const named = secure.servername
    const isRight = named ? named.toLowerCase() === host : isIP(host) !== 0
    servers.take(
      secure,
      { authority, scheme: 'https', ...(!isRight && { refused: 'wrong_sni' as const }) },
      protocol,
    )
  }
  await openSecure(ctx.authority, socket, host, { onSecure, onDistrust: () => onDistrust(host) })
}

function turnAway(ctx: Context, request: IncomingMessage, socket: Socket, reason: Reason): void {
  // Clients that have a login send it when they are asked: nothing was refused yet.
  if (reason !== 'no_login' || request.headers['proxy-authorization'] !== undefined) {
    const read = readAuthority(request.url ?? '', 'https')
    const line = beginLine(ctx, {
      method: 'CONNECT',
      authority: read === undefined ? '' : authorityText(read),
    })
    line.reason = reason
    line.end()
  }
  answerBare(socket, reason)
}

function createLoginCheck({ user, password }: Login): (request: IncomingMessage) => boolean {
  const hash = (text: string) => createHash('sha256').update(text).digest()
  const expected = hash(Buffer.from(`${user}:${password}`).toString('base64'))
  return ({ headers }) => {
    const [, given = ''] = /^basic +([a-z\d+/=]+) *$/i.exec(headers['proxy-authorization'] ?? '') ?? []
    return timingSafeEqual(hash(given), expected)
  }
}
